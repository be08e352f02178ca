import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { envoyStat, readMetric } from '../support/metrics.ts'
import { cacheLine, create, errorOf, prompt, remove, storedSession, untilStored, use } from '../support/sessions.ts'
import { embeddedPods, type StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const root = mkdtempSync(join(tmpdir(), 'pools-'))
afterAll(() => rm(root, { recursive: true, force: true }))

/** The changes of docs/envoy.md for a cluster for each pool: the first two pods are of pool chat, others of code. */
const clusterForEachPool = (text: string): string => {
  const page = readFileSync(new URL('../../../docs/envoy.md', import.meta.url), 'utf8')
  const [, mutation = '', route = '', action = ''] =
    /# early_header_mutation:[^\n]*\n(.*?)# the first route\n(.*?)# ext_proc:[^\n]*\n(.*?)```/s.exec(page) ?? []
  const config = envoyForm.parse(parse(text, { merge: true }))
  const [
    {
      filter_chains: [
        {
          filters: [manager],
        },
      ],
    },
  ] = config.static_resources.listeners
  const {
    early_header_mutation_extensions: [early],
    route_config,
    http_filters,
  } = manager.typed_config
  early.typed_config.mutations.push(...list.parse(parse(mutation)))
  for (const host of route_config.virtual_hosts) host.routes.unshift(...list.parse(parse(route)))
  for (const { typed_config: filter } of http_filters.filter(({ name }) => name === 'envoy.filters.http.ext_proc'))
    Object.assign(filter, parse(action))
  const [pods] = config.static_resources.clusters.filter(({ name }) => name === 'pods')
  const [group] = pods?.load_assignment?.endpoints ?? []
  const clusterOf = (name: string, first: number, end: number) => ({
    ...pods,
    name,
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: group?.lb_endpoints.slice(first, end) }] },
  })
  const clusters = [...config.static_resources.clusters, clusterOf('chat', 0, 2), clusterOf('code', 2, 4)]
  return JSON.stringify({ ...config, static_resources: { ...config.static_resources, clusters } })
}

const list = z.array(z.unknown())
const first = <Item extends z.ZodType>(item: Item) => z.tuple([item], z.unknown())
const envoyForm = z.looseObject({
  static_resources: z.looseObject({
    listeners: first(
      z.looseObject({
        filter_chains: first(
          z.looseObject({
            filters: first(
              z.looseObject({
                typed_config: z.looseObject({
                  early_header_mutation_extensions: first(
                    z.looseObject({ typed_config: z.looseObject({ mutations: list }) }),
                  ),
                  route_config: z.looseObject({ virtual_hosts: z.array(z.looseObject({ routes: list })) }),
                  http_filters: z.array(z.looseObject({ name: z.string(), typed_config: z.looseObject({}) })),
                }),
              }),
            ),
          }),
        ),
      }),
    ),
    clusters: z.array(
      z.looseObject({
        name: z.string(),
        load_assignment: z.looseObject({ endpoints: z.array(z.looseObject({ lb_endpoints: list })) }).optional(),
      }),
    ),
  }),
})

const folderOf = (name: string) => join(root, name)
let chat: readonly StackPod[] = []
let code: readonly StackPod[] = []
beforeAll(async () => {
  const start = (name: string, model: string, key: readonly string[]): Promise<readonly StackPod[]> =>
    embeddedPods({ count: 2, arguments: ['--model-name', model, ...key] })(folderOf(name))
  ;[chat, code] = await Promise.all([
    start('chat', 'chat-model', ['--api-key', 'test-key']),
    start('code', 'code-model', []),
  ])
})
afterAll(() => Promise.all([...chat, ...code].map(async (pod) => pod.stop?.())))

/** Two pools with a folder, a model and a key of their own; the client's key is that of the pool `chat`. */
describe.each([
  {
    name: 'one cluster and the memory store',
    store: 'memory',
    clusters: ['pods'],
    envoyConfig: (text: string) => text,
  },
  {
    name: 'a cluster for each pool and Redis',
    store: 'redis',
    clusters: ['chat', 'code'],
    envoyConfig: clusterForEachPool,
  },
] as const)('with $name', ({ store, clusters, envoyConfig }) => {
  const env: Record<string, string> = {}
  const stack = useStack({
    store,
    envoyConfig,
    env,
    pods: async () => {
      const pool = (name: string, pods: readonly StackPod[], more: object = {}) => ({
        name,
        pods: pods.map(({ address }) => address),
        kv: { directory: folderOf(name), prefillMsPerToken: 1000 },
        ...more,
      })
      env['PODS'] = ''
      env['KV_DIR'] = ''
      env['CTX_POOLS'] = JSON.stringify([pool('chat', chat, { apiKey: 'test-key' }), pool('code', code)])
      // They outlive the stack.
      return [...chat, ...code].map(({ address }) => ({ address }))
    },
  })

  const bodyOf = (model: string, words = 20) => ({ model, prompt: prompt(words), max_tokens: 2 })

  test.each([
    { model: 'chat-model', pods: [0, 1] },
    { model: 'code-model', pods: [2, 3] },
  ])('a session of $model lives on the pods of its pool, and its KV moves between them', async ({ model, pods }) => {
    const body = bodyOf(model)
    const id = await storedSession(stack, { body })
    const first = await untilStored(stack, id, 1)
    const addresses = pods.map((index) => stack.pods[index]?.address)
    expect(addresses).toContain(first.kv.pod)
    const lines: (string | null)[] = []
    for (const turn of [2, 3, 4]) {
      const response = await use(stack, id, { body, headers: { 'routing-strategy': 'round-robin' } })
      lines.push(cacheLine(response))
      expect(addresses).toContain((await untilStored(stack, id, turn)).kv.pod)
    }
    expect(lines).toEqual(lines.map(() => expect.stringMatching(/^hit;/)))
    expect(lines).toContainEqual(expect.stringMatching(/tier=store/))
    expect((await remove(stack, id)).status).toBe(200)
  })

  test('Envoy sent the turns to these clusters', async () => {
    const served = clusters.map((cluster) => envoyStat(stack, `cluster.${cluster}.upstream_rq_2xx`))
    expect(Math.min(...(await Promise.all(served)))).toBeGreaterThanOrEqual(4)
  })

  test('the pods of each pool are counted', async () => {
    expect(await readMetric(stack, 'pods')).toMatchObject({
      'pool="chat",state="ready"': 2,
      'pool="code",state="ready"': 2,
      'pool="code",state="not_ready"': 0,
    })
  })

  test('a model of no pool gets 404', async () => {
    const response = await create(stack, { body: bodyOf('another-model') })
    expect([response.status, errorOf(response)]).toEqual([404, expect.objectContaining({ code: 'model_not_found' })])
  })

  test('a turn without a session goes to the pool of the model that a header names', async () => {
    const headers = { 'x-session-id': 'an-id-of-another-system', 'x-gateway-model-name': 'code-model' }
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => use(stack, 'an-id-of-another-system', { body: bodyOf('code-model'), headers })),
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })
})
