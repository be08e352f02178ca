import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { connectorOf, listedPods, poolsOf } from '../../../src/config/pools.ts'
import { useFolder } from '../../support/use-folder.ts'
import { essential, load, problemsOf } from './load.ts'

const folder = useFolder()

const chat = { name: 'chat', pods: ['a:1'], kv: { connector: 'none' } }
const variable = (...pools: readonly object[]) => ({ CTX_POOLS: JSON.stringify(pools) })

describe('poolsOf', () => {
  test('the options of the top are the default pool, before the others', () => {
    const pools = poolsOf(load({ ...essential, CTX_ENGINES_API_KEY: 'k', ...variable(chat) }))
    expect(pools).toMatchObject([
      { name: 'default', pods: ['10.0.0.1:8000'], apiKey: 'k', kv: { directory: '/mnt/kv' } },
      {
        name: 'chat',
        pods: ['a:1'],
        models: [],
        https: false,
        responsesApi: 'native',
        kv: { connector: 'none', callTimeoutMs: 10_000 },
      },
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

  test('an IPv6 address has its shortest form', () => {
    const lmcache = { CONNECTOR: 'lmcache', LMCACHE_URL: 'http://a:1', LMCACHE_INSTANCES: '[fd00:0::1]:8000=a' }
    const { routing, kv } = load({ ...lmcache, PODS: '[FD00::1]:8000' })
    expect([routing.pods, kv.lmcache?.instances]).toEqual([['[fd00::1]:8000'], ['[fd00::1]:8000=a']])
  })

  test('a key is read from its file', () => {
    const apiKeyFile = join(folder(), 'key')
    writeFileSync(apiKeyFile, 'from-file\n')
    expect(poolsOf(load(variable({ ...chat, apiKeyFile })))).toMatchObject([{ apiKey: 'from-file' }])
  })
})

test.each<[string, readonly object[], RegExp]>([
  ['that is no JSON object', [{ ...chat, colour: 'red' }], /pools\.0\.colour: no such option/],
  ['without pods', [{ ...chat, pods: [] }], /pools\.0\.pods.*: there are no engines: give pools\.0\.pods/],
  ['with pods and DNS', [{ ...chat, dns: { name: 'n', port: 1 } }], /pools\.0\.dns.*not both/],
  ['with the name of another', [chat, { ...chat, pods: ['b:1'] }], /pools\.1\.name.*has this name/],
  ['with the name of the default pool', [{ ...chat, name: 'default' }], /pools\.0\.name.*has this name/],
  ['with a pod of another', [chat, { ...chat, name: 'code' }], /pools\.1\.pods.*pod of another pool/],
  ['without its folder', [{ ...chat, kv: {} }], /pools\.0\.kv\.directory.*needs the folder/],
  ['with no way to Kubernetes', [{ ...chat, pods: [], kubernetes: {} }], /pools\.0\.kubernetes.*give one of service/],
  [
    'with a selector and no ports',
    [{ ...chat, pods: [], kubernetes: { selector: 'app=a' } }],
    /pools\.0\.kubernetes\.ports.*give them/,
  ],
  [
    'with the folder of another',
    [
      { ...chat, kv: { directory: '/kv' } },
      { ...chat, name: 'code', pods: ['b:1'], kv: { directory: '/kv' } },
    ],
    /pools\.1\.kv\.directory.*another pool has this folder/,
  ],
  ['with a limit of the store', [{ ...chat, kv: { directory: '/kv', maxStoreBytes: 2048 } }], /pools\.0\.kv\.maxStore/],
  [
    'with a module and an option of llamacpp-slots',
    [{ ...chat, kv: { connectorModule: '/own.mjs', storeModule: '/store.mjs' } }],
    /pools\.0\.kv\.storeModule.*belongs to the connector llamacpp-slots/,
  ],
  ['with a certificate and no HTTPS', [{ ...chat, caFile: '/ca' }], /pools\.0\.caFile.*belongs to.*https/],
  [
    'whose responses are translated but not kept',
    [{ ...chat, responsesApi: 'chat' }],
    /pools\.0\.responsesApi.*responses\.store/,
  ],
  ['whose key is given twice', [{ ...chat, apiKey: 'k', apiKeyFile: '/k' }], /pools\.0\.apiKeyFile/],
])('a pool %s is refused', (_title, pools, problem) => {
  expect(problemsOf(variable(...pools))).toMatch(problem)
})
