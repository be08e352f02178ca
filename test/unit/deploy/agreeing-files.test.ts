import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { filterHeaders } from '../../../src/context/context-cache-manager.ts'
import { leaseMs } from '../../../src/kvcache/llamacpp-slots/open-claims.ts'
import { namesInEnvoy } from '../../support/envoy-names.ts'
import { essential, load } from '../config/load.ts'

const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

const files = {
  envoy: 'envoy.yaml',
  picker: 'deploy/envoy/picker.yaml',
  envoyGateway: 'deploy/envoy-gateway/context-cache.yaml',
  envoyGatewayResponses: 'deploy/envoy-gateway/responses.yaml',
  route: 'deploy/inference-pool/route.yaml',
  chart: 'deploy/helm/context-cache-gateway/values.yaml',
} as const

const istio = 'deploy/helm/context-cache-gateway/templates/inference-pool.yaml'

const units: Readonly<Record<string, number>> = { '': 1, s: 1, ms: 0.001, Ki: 1024, Mi: 1024 ** 2 }

/** `600s`, `16Mi`, `16777216`: seconds or bytes. */
const amountOf = (value: unknown): unknown => {
  const [, number = '', unit = ''] = /^([\d.]+)([a-zA-Z]*)$/.exec(String(value)) ?? []
  const factor = units[unit]
  return number === '' || factor === undefined ? value : Number(number) * factor
}

/** The keepalive of each HTTP/2 connection that a file configures, in seconds. */
const pingsOf = (path: string): readonly { readonly interval: number; readonly timeout: number }[] =>
  [...textOf(path).matchAll(/connection_?keepalive: \{ interval: (\d+)s, timeout: (\d+)s \}/gi)].map(
    ([, interval, timeout]) => ({ interval: Number(interval), timeout: Number(timeout) }),
  )

/** All values that stand in a file under these names, in whatever depth: each once. */
const valuesOf = (file: keyof typeof files, ...names: readonly string[]): readonly unknown[] => {
  const found = new Set<unknown>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) {
      if (names.includes(name) && typeof member !== 'object') found.add(amountOf(member))
      visit(member)
    }
  }
  for (const document of parseAllDocuments(textOf(files[file]), { merge: true })) visit(document.toJS())
  return [...found]
}

describe('the files of deploy and the defaults of the gateway', () => {
  const { turns, admission, kv, sessions } = load(essential)

  test('have one size of the largest body', () => {
    const bytes = [turns.maxBodyBytes]
    expect(valuesOf('envoy', 'max_request_bytes', 'request_body_buffer_limit')).toEqual(bytes)
    expect(valuesOf('envoyGateway', 'bufferLimit', 'limit')).toEqual(bytes)
    expect(valuesOf('envoyGatewayResponses', 'bufferLimit')).toEqual(bytes)
    expect(textOf('deploy/envoy/context-cache.lua')).toContain(`local max_request_bytes = ${turns.maxBodyBytes}\n`)
  })

  test('wait as long for a decision', () => {
    const seconds = [admission.messageTimeoutMs / 1000]
    expect(valuesOf('envoy', 'max_message_timeout')).toEqual(seconds)
    expect(valuesOf('envoyGateway', 'messageTimeout')).toEqual(seconds)
    expect(valuesOf('envoyGatewayResponses', 'messageTimeout')).toEqual(seconds)
    expect(kv.loadBudgetMs).toBeLessThan(admission.messageTimeoutMs)
    expect(
      valuesOf('envoy', 'message_timeout').every((least) => Number(least) * 1000 > sessions.commandTimeoutMs),
    ).toBe(true)
  })

  test('give a gateway that stands still up after as long, before its slots are taken', () => {
    const pings = [...Object.values(files), istio].flatMap(pingsOf)
    expect(pings).toHaveLength(7)
    const [timeout, ...others] = new Set(pings.map((ping) => ping.timeout))
    expect(others).toEqual([])
    expect(Number(timeout) * 1000).toBeLessThan(leaseMs)
    // Envoy Gateway refuses anything else.
    const onEnvoyGateway = [files.envoyGateway, files.envoyGatewayResponses].flatMap(pingsOf)
    expect(onEnvoyGateway.filter((ping) => ping.timeout >= ping.interval)).toEqual([])
  })

  test('wait as long for an answer, also when a part is stopped', () => {
    const [idle, ...others] = valuesOf('envoy', 'stream_idle_timeout')
    expect([idle, others]).toEqual([600, []])
    expect(valuesOf('picker', 'stream_idle_timeout')).toEqual([idle])
    expect(valuesOf('envoyGateway', 'streamIdleTimeout', 'request', 'drainTimeout')).toEqual([idle])
    expect(valuesOf('envoyGatewayResponses', 'request')).toEqual([idle])
    expect(valuesOf('route', 'request')).toEqual([idle])
    expect(valuesOf('chart', 'drainSeconds')).toEqual([idle])
    for (const file of ['envoy', 'picker'] as const)
      expect(Math.max(...valuesOf(file, 'timeout').map(Number))).toBe(idle)
    expect(turns.leaseSeconds).toBeGreaterThan(Number(idle))
  })

  // The chart takes envoy.yaml.
  test.each(['envoy', 'picker', 'envoyGateway'] as const)(
    'end streams gracefully, and never drop their client: %s',
    (file) => {
      const key = 'envoy.reloadable_features.ext_proc_graceful_grpc_close'
      const hasPatch = textOf(files[file]).includes(`/layers/0/static_layer/${key}, value: true }`)
      expect([...valuesOf(file, key), hasPatch]).toContain(true)
      expect(valuesOf(file, 'max_cached_entry_idle_duration')).toEqual([365 * 86_400])
    },
  )

  test('wait as long for a request, and for a connection', () => {
    const [request] = valuesOf('envoy', 'request_timeout')
    expect(request).toBe(60)
    expect(valuesOf('picker', 'request_timeout')).toEqual([request])
    expect(valuesOf('envoyGateway', 'requestReceivedTimeout')).toEqual([request])
    const [connect] = valuesOf('envoy', 'connect_timeout')
    expect(valuesOf('picker', 'connect_timeout')).toEqual([connect])
    expect(valuesOf('envoyGateway', 'connectTimeout')).toEqual([connect])
    expect(valuesOf('envoyGatewayResponses', 'connectTimeout')).toEqual([connect])
  })

  test('let as many requests through', () => {
    const most = valuesOf('envoy', 'max_requests', 'max_connections', 'max_pending_requests')
    expect(most).toHaveLength(1)
    expect(valuesOf('picker', 'max_requests', 'max_connections', 'max_pending_requests')).toEqual(most)
    for (const file of ['envoyGateway', 'envoyGatewayResponses'] as const)
      expect(valuesOf(file, 'maxParallelRequests', 'maxConnections', 'maxPendingRequests')).toEqual(most)
  })

  test('a picker receives the headers that a gateway behind routes receives', () => {
    const [behindRoutes, picker] = [forwarded('envoy.yaml'), forwarded('deploy/envoy/picker.yaml')]
    expect(behindRoutes).toEqual(expect.arrayContaining([':path', 'authorization', 'x-session-id']))
    expect(picker).toEqual(expect.arrayContaining([...behindRoutes]))
  })

  test('have routes for the headers in which clients name their conversations', () => {
    const { names } = sessions.implicit
    const { routes, allowed } = namesInEnvoy(textOf(files.envoy))
    // `x-context-name` is what session-names.lua found in a body.
    expect(routes.map(({ header = '' }) => header).toSorted()).toEqual([...names, 'x-context-name'].toSorted())
    expect(allowed).toEqual(expect.arrayContaining([...names, 'x-claude-code-agent-id']))
    expect(headersOfRule('names').toSorted()).toEqual(names.toSorted())
    expect(headersOfRule('turns')).toEqual(['x-session-id'])
  })

  test('send the gateway what it keeps and answers of responses and conversations, on Envoy Gateway as well', () => {
    const turn = { request: { body: 'Buffered' }, response: { body: 'Streamed' }, allowModeOverride: true }
    expect(policyOf('/v1/responses')).toMatchObject({ mode: turn, context: { keeps_responses: true } })
    const answered = ['/v1/responses/resp_1/input_items', '/v1/conversations', '/v1/conversations/conv_1/items']
    for (const path of answered) expect(policyOf(path)).toMatchObject({ mode: { request: turn.request } })
    // As every other path.
    expect(policyOf('/v1/completions')).toMatchObject({ mode: undefined })
  })

  test('remove what session-names.lua writes from clients, and from what pods receive', () => {
    const lua = textOf('deploy/envoy/session-names.lua')
    const written = new Set([...lua.matchAll(/headers:replace\("([^"]+)"/g)].flatMap(([, name]) => name ?? []))
    expect(written).toEqual(new Set(Object.values(filterHeaders)))
    const { allowed, removedEarly, removedLate } = namesInEnvoy(textOf(files.envoy))
    expect(removedEarly).toEqual(expect.arrayContaining([...written]))
    expect(removedLate).toEqual(expect.arrayContaining([...written]))
    // The last one chooses a route, and is not for the gateway.
    expect([...written].filter((name) => !allowed.includes(name))).toEqual(['x-context-body'])
    const { spec } = gatewayPolicy.parse(resourceOf('ClientTrafficPolicy'))
    expect(spec.headers.earlyRequestHeaders.remove).toEqual(expect.arrayContaining([...written]))
    // The picker removes these by itself, from the headers that it receives.
    expect(forwarded('deploy/envoy/picker.yaml')).toEqual(expect.arrayContaining([...written]))
  })
})

const resourceOf = (kind: string): unknown =>
  parseAllDocuments(textOf(files.envoyGateway), { merge: true })
    .map((document) => document.toJS())
    .find((resource) => resource.kind === kind)

const gatewayPolicy = z.object({
  spec: z.object({ headers: z.object({ earlyRequestHeaders: z.object({ remove: z.array(z.string()) }) }) }),
})

const gatewayRoute = z.object({
  spec: z.object({
    rules: z.array(
      z.object({
        name: z.string(),
        matches: z.array(z.object({ headers: z.array(z.object({ name: z.string() })).default([]) })),
      }),
    ),
  }),
})

/** Headers of which one leads a request to a rule of the Envoy Gateway example. */
const headersOfRule = (name: string): readonly string[] =>
  gatewayRoute
    .parse(resourceOf('HTTPRoute'))
    .spec.rules.filter((rule) => rule.name === name)
    .flatMap(({ matches }) => matches.flatMap(({ headers }) => headers.map((header) => header.name)))

const extensionPolicy = z.object({
  kind: z.literal('EnvoyExtensionPolicy'),
  spec: z.object({
    targetRefs: z.array(z.object({ name: z.string(), sectionName: z.string().optional() })),
    extProc: z.tuple([z.object({ processingMode: z.unknown() })]).optional(),
    lua: z.array(z.object({ filterContext: z.unknown().optional() })),
  }),
})
const httpRoute = z.object({
  kind: z.literal('HTTPRoute'),
  metadata: z.object({ name: z.string(), labels: z.object({ app: z.literal('context-cache') }) }),
  spec: z.object({
    rules: z.array(
      z.object({
        name: z.string().optional(),
        matches: z.array(
          z.object({
            path: z.object({ type: z.enum(['Exact', 'RegularExpression', 'PathPrefix']), value: z.string() }),
            headers: z.unknown().optional(),
          }),
        ),
      }),
    ),
  }),
})

const matchesPath = {
  Exact: (path: string, value: string) => path === value,
  RegularExpression: (path: string, value: string) => new RegExp(`^(?:${value})$`).test(path),
  PathPrefix: (path: string, value: string) => path === value || path.startsWith(`${value}/`),
}

/** What Envoy Gateway sends of a request of this path without headers: the first kind of match that there is counts. */
const policyOf = (path: string) => {
  const resources = [files.envoyGateway, files.envoyGatewayResponses].flatMap((file) =>
    parseAllDocuments(textOf(file), { merge: true }).map((document): unknown => document.toJS()),
  )
  const rules = resources
    .flatMap((resource) => httpRoute.safeParse(resource).data ?? [])
    .flatMap(({ metadata, spec }) => spec.rules.map((rule) => ({ ...rule, route: metadata.name })))
  const rule = (['Exact', 'RegularExpression', 'PathPrefix'] as const)
    .flatMap((type) =>
      rules.filter(({ matches }) =>
        matches.some((one) => one.path.type === type && !one.headers && matchesPath[type](path, one.path.value)),
      ),
    )
    .at(0)
  const policy = resources
    .flatMap((resource) => extensionPolicy.safeParse(resource).data ?? [])
    .find(({ spec }) => spec.targetRefs.some((to) => to.name === rule?.route && to.sectionName === rule.name))
  return { mode: policy?.spec.extProc?.[0].processingMode, context: policy?.spec.lua[0]?.filterContext }
}

/** Names of the headers that Envoy sends to the gateway. */
const forwarded = (path: string): readonly string[] => {
  const [, list = ''] = /allowed_headers:\n\s+patterns: \[([\s\S]*?)\]/.exec(textOf(path)) ?? []
  return [...list.matchAll(/exact: "?([^" }]+)/g)].flatMap(([, name]) => name ?? [])
}
