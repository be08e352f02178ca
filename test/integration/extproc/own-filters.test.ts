import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Document, isSeq, parse } from 'yaml'
import { z } from 'zod'
import { clusters, httpFilters, indexOfNamed, manager } from '../../../playground/envoy-config.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { call, type HttpResponse } from '../support/client.ts'
import { envoyStat } from '../support/metrics.ts'
import { errorOf } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const file = new URL('../../../deploy/envoy/own-filters.yaml', import.meta.url)
const list = z.array(z.unknown())
const { config, envoy } = z
  .object({
    config: z.object({ tenant: z.object({ principalHeader: z.string() }) }),
    envoy: z.object({
      add: z.object({
        early_header_mutation: list,
        virtual_host: z.object({ typed_per_filter_config: z.record(z.string(), z.unknown()) }),
        http_filters: list,
        clusters: list,
      }),
    }),
  })
  .parse(parse(readFileSync(file, 'utf8')))

let issuer: TokenIssuer
beforeAll(async () => {
  issuer = await startTokenIssuer()
})
afterAll(() => issuer.stop())

const { stack, pod } = useScriptedStack({
  env: { CTX_TENANT_PRINCIPAL_HEADER: config.tenant.principalHeader },
  envoyConfig: (text) => {
    const { early_header_mutation: early, virtual_host: host, http_filters: filters, clusters: more } = envoy.add
    const document = new Document(parse(text))
    const mutations = [...manager, 'early_header_mutation_extensions', 0, 'typed_config', 'mutations']
    for (const mutation of early) document.addIn(mutations, mutation)
    for (const [name, value] of Object.entries(host.typed_per_filter_config)) {
      document.setIn([...manager, 'route_config', 'virtual_hosts', 0, 'typed_per_filter_config', name], value)
    }
    const allowed = [
      ...httpFilters,
      indexOfNamed(document, httpFilters, 'envoy.filters.http.ext_proc'),
      'typed_config',
      'forward_rules',
      'allowed_headers',
      'patterns',
    ]
    document.addIn(allowed, { exact: config.tenant.principalHeader })
    const chain = document.getIn(httpFilters)
    if (isSeq(chain)) chain.items.unshift(...filters)
    for (const cluster of more) document.addIn(clusters, cluster)
    return JSON.stringify(document)
      .replace('"address":"issuer.example.com","port_value":443', `"address":"127.0.0.1","port_value":${issuer.port}`)
      .replace(/,"transport_socket":\{[^}]*sni[^}]*\}\}/, '')
  },
})

const body = { model: 'scripted', prompt: 'Hello', max_tokens: 2 }
const callAs = (token: string, request: Parameters<typeof call>[1] = {}, path = '/v1/context'): Promise<HttpResponse> =>
  call(`${stack.url}${path}`, { ...request, headers: { authorization: `Bearer ${token}`, ...request.headers } })
const asks = () => envoyStat(stack, 'ext_proc.streams_started')

test('a session belongs to the caller that a token names, whatever the token; nobody can pose as another', async () => {
  const created = await callAs(issuer.token({ sub: 'ann' }), { body })
  const id = created.headers.get('x-session-id')
  expect([created.status, id]).toEqual([200, expect.stringMatching(/^ctx_/)])
  expect(pod.requests().at(-1)?.headers).not.toHaveProperty('authorization')

  const path = `/v1/context/${id}`
  const renewed = issuer.token({ sub: 'ann', exp: Math.floor(Date.now() / 1000) + 60 })
  expect((await callAs(renewed, {}, path)).status).toBe(200)
  const headers = { 'x-principal': 'ann' }
  expect((await callAs(issuer.token({ sub: 'bob' }), { headers }, path)).status).toBe(404)
  expect(errorOf(await callAs(issuer.token({}), { headers }, path))).toMatchObject({ code: 'invalid_api_key' })
})

test.each([
  ['is missing', 401, 'invalid_token', () => ''],
  ['has expired', 401, 'invalid_token', () => `Bearer ${issuer.token({ sub: 'ann', exp: 1 })}`],
  [
    'is not of the issuer',
    401,
    'invalid_token',
    () => `Bearer ${issuer.token({ sub: 'ann' }).replace(/\.[^.]*$/, '.AAAA')}`,
  ],
  ['is meant for others', 403, 'permission_denied', () => `Bearer ${issuer.token({ sub: 'ann', aud: 'others' })}`],
])(
  'a token that %s gets %d, and neither the gateway nor an engine sees it',
  async (_what, status, code, authorization) => {
    const before = [await asks(), pod.requests().length]
    const headers = { authorization: authorization() }

    for (const path of ['/v1/context', '/v1/completions']) {
      const refused = await call(`${stack.url}${path}`, { body, headers })
      expect([refused.status, errorOf(refused)]).toMatchObject([status, { code }])
      expect(refused.headers.get('www-authenticate')).toContain('Bearer')
    }

    expect([await asks(), pod.requests().length]).toEqual(before)
  },
)

test('a preflight of the allowed origin is answered without a token, another one is not', async () => {
  const sdk = ['lang', 'package-version', 'os', 'arch', 'runtime', 'runtime-version', 'retry-count', 'timeout']
  const asked = ['content-type', 'x-session-id', 'routing-strategy', ...sdk.map((name) => `x-stainless-${name}`)]
  const method = { 'access-control-request-method': 'POST', 'access-control-request-headers': asked.join(',') }
  const preflight = (origin: string) =>
    call(`${stack.url}/v1/completions`, { method: 'OPTIONS', headers: { origin, authorization: '', ...method } })

  const allowed = await preflight('https://app.example.com')
  expect(allowed.status).toBe(200)
  expect(allowed.headers.get('access-control-allow-headers')?.split(', ')).toEqual(expect.arrayContaining(asked))
  expect((await preflight('https://evil.example.com')).headers.get('access-control-allow-origin')).toBeNull()

  const headers = { origin: 'https://app.example.com' }
  const answer = await callAs(issuer.token({ sub: 'ann' }), { body, headers })
  expect(answer.headers.get('access-control-expose-headers')).toMatch(
    /^x-session-id, x-session-ttl, .*, x-response-cache, /,
  )
})

test('a caller above its limit gets 429 in the form of OpenAI, and others are served', async () => {
  const token = issuer.token({ sub: 'eager' })
  const answers = await Promise.all(Array.from({ length: 100 }, () => callAs(token, { body }, '/v1/completions')))
  const refused = answers.find(({ status }) => status !== 200)

  expect([refused?.status, refused?.body]).toMatchObject([
    429,
    { error: { type: 'rate_limit_error', code: 'too_many_requests' } },
  ])
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await callAs(issuer.token({ sub: 'ann' }), { body }, '/v1/completions')).status).toBe(200)
})
