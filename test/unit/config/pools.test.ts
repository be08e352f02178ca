import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { connectorOf, listedPods, poolsOf } from '../../../src/config/pools.ts'
import { essential, load, problemsOf } from './load.ts'

const folder = mkdtempSync(join(tmpdir(), 'pools-'))
afterAll(() => rmSync(folder, { recursive: true }))

const chat = { name: 'chat', pods: ['a:1'], kv: { connector: 'none' } }
const variable = (...pools: readonly object[]) => ({ CTX_POOLS: JSON.stringify(pools) })

describe('poolsOf', () => {
  test('the options of the top are the default pool, before the others', () => {
    const pools = poolsOf(load({ ...essential, CTX_ENGINES_API_KEY: 'k', ...variable(chat) }))
    expect(pools).toMatchObject([
      { name: 'default', pods: ['10.0.0.1:8000'], apiKey: 'k', kv: { directory: '/mnt/kv' } },
      { name: 'chat', pods: ['a:1'], models: [], https: false, kv: { connector: 'none', callTimeoutMs: 10_000 } },
    ])
    expect(pools[1]?.apiKey).toBeUndefined()
  })

  test('without pods at the top there is no default pool, and no folder is required', () => {
    const config = load(
      variable(chat, { name: 'code', dns: { name: 'code.pods', port: 1 }, kv: { connector: 'none' } }),
    )
    expect(poolsOf(config).map(({ name }) => name)).toEqual(['chat', 'code'])
    expect(listedPods(config)).toBeUndefined()
  })

  test('pods from Kubernetes make the default pool; ports come as numbers and as texts', () => {
    const config = load({
      CTX_ROUTING_KUBERNETES_SELECTOR: 'app=a',
      CTX_ROUTING_KUBERNETES_PORTS: '8000,8001',
      CONNECTOR: 'none',
    })
    expect(poolsOf(config)).toMatchObject([{ name: 'default', kubernetes: { selector: 'app=a', ports: [8000, 8001] } }])
    expect(listedPods(config)).toBeUndefined()
  })

  test('with a module of its own a pool needs nothing of the connector that it does not use', () => {
    const kv = { connector: 'lmcache', connectorModule: '/own.mjs' }
    expect(poolsOf(load(variable({ ...chat, kv }))).map((pool) => connectorOf(pool.kv))).toEqual(['/own.mjs'])
  })

  test('a key is read from its file', () => {
    const apiKeyFile = join(folder, 'key')
    writeFileSync(apiKeyFile, 'from-file\n')
    expect(poolsOf(load(variable({ ...chat, apiKeyFile })))).toMatchObject([{ apiKey: 'from-file' }])
  })
})

test.each<[string, readonly object[], RegExp]>([
  ['that is no JSON object', [{ ...chat, colour: 'red' }], /colour.*\n.*at pools\.0$/],
  ['without pods', [{ ...chat, pods: [] }], /no engines: give pools\.0\.pods.*\n.*at pools\.0\.pods/],
  ['with pods and DNS', [{ ...chat, dns: { name: 'n', port: 1 } }], /not both.*\n.*at pools\.0\.dns/],
  [
    'with no way to Kubernetes',
    [{ ...chat, pods: [], kubernetes: {} }],
    /Give one of service.*\n.*at pools\.0\.kubernetes/,
  ],
  [
    'with pods and Kubernetes',
    [{ ...chat, kubernetes: { service: 'engines' } }],
    /not both.*\n.*at pools\.0\.kubernetes/,
  ],
  [
    'with a selector and no ports',
    [{ ...chat, pods: [], kubernetes: { selector: 'app=a' } }],
    /give them.*\n.*at pools\.0\.kubernetes\.ports/,
  ],
  ['with the name of another', [chat, { ...chat, pods: ['b:1'] }], /has this name.*\n.*at pools\.1\.name/],
  ['with the name of the default pool', [{ ...chat, name: 'default' }], /has this name.*\n.*at pools\.0\.name/],
  ['with a pod of another', [chat, { ...chat, name: 'code' }], /pod of another pool.*\n.*at pools\.1\.pods/],
  ['without its folder', [{ ...chat, kv: {} }], /needs the folder.*\n.*at pools\.0\.kv\.directory/],
  [
    'with the folder of another',
    [
      { ...chat, kv: { directory: '/kv' } },
      { ...chat, name: 'code', pods: ['b:1'], kv: { directory: '/kv' } },
    ],
    /Another pool has this folder.*\n.*at pools\.1\.kv\.directory/,
  ],
  ['with a limit of the store', [{ ...chat, kv: { directory: '/kv', maxStoreBytes: 2048 } }], /at pools\.0\.kv\.maxSt/],
  [
    'with a module and an option of llamacpp-slots',
    [{ ...chat, kv: { connectorModule: '/own.mjs', storeModule: '/store.mjs' } }],
    /Belongs to the connector llamacpp-slots.*\n.*at pools\.0\.kv\.storeModule/,
  ],
  ['with a certificate and no HTTPS', [{ ...chat, caFile: '/ca' }], /Belongs to.*https.*\n.*at pools\.0\.caFile/],
  ['whose key is given twice', [{ ...chat, apiKey: 'k', apiKeyFile: '/k' }], /at pools\.0\.apiKeyFile/],
])('a pool %s is refused', (_title, pools, problem) => {
  expect(problemsOf(variable(...pools))).toMatch(problem)
})
