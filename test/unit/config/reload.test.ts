import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { listConfigOptions } from '../../../src/config/options.ts'
import { judgeReload, reloadableOptions } from '../../../src/config/reload.ts'
import { load } from './load.ts'

const pods = '127.0.0.1:8101,127.0.0.1:8102'
const secret = 's'.repeat(32)
const before = { PODS: pods, KV_DIR: '/kv', CTX_TENANT_SECRET: secret }

describe('judgeReload', () => {
  test.each([
    { name: 'nothing', change: {}, judged: { kind: 'unchanged' } },
    {
      name: 'pods, policy, a budget and names',
      change: {
        PODS: '127.0.0.1:8101,127.0.0.1:8103',
        CTX_ROUTING_POLICY: 'round-robin',
        CTX_KV_LOAD_BUDGET_MS: '2000',
        CTX_SESSIONS_IMPLICIT_NAMES: 'thread-id',
        CTX_LOG_LEVEL: 'debug',
      },
      judged: {
        kind: 'applicable',
        changed: ['sessions.implicit.names', 'routing.policy', 'routing.pods', 'kv.loadBudgetMs', 'log.level'],
      },
    },
    {
      name: 'a port beside a policy',
      change: { CTX_LISTEN_ADMIN_PORT: '1234', CTX_ROUTING_POLICY: 'random' },
      judged: { kind: 'refused', fixed: ['listen.admin.port'] },
    },
    {
      name: 'the secret',
      change: { CTX_TENANT_SECRET: 't'.repeat(32) },
      judged: { kind: 'refused', fixed: ['tenant.secret'] },
    },
    {
      name: 'pods that hold resources',
      change: { PODS: '127.0.0.1:8101' },
      common: { CTX_ADMISSION_REQUIREMENTS: 'prefill=R1:1', CTX_ADMISSION_RESOURCES: 'R1:5:127.0.0.1:8102' },
      after: { CTX_ADMISSION_RESOURCES: 'R1:5:127.0.0.1:8101' },
      judged: { kind: 'refused', fixed: ['routing.pods', 'admission.resources'] },
    },
    {
      name: 'pods from DNS instead of a list',
      change: { PODS: '', CTX_ROUTING_DNS_NAME: 'pods.example', CTX_ROUTING_DNS_PORT: '8000' },
      judged: { kind: 'refused', fixed: ['routing.pods', 'routing.dns'] },
    },
  ])('$name: $judged.kind', ({ change, common = {}, after = {}, judged }) => {
    const [from, to] = [load({ ...before, ...common }), load({ ...before, ...common, ...change, ...after })]
    const found = judgeReload(from, to)
    expect(found).toEqual(judged)
  })

  test('every reloadable option exists', () => {
    const known = listConfigOptions().map(({ path }) => path.join('.'))
    const inPools = reloadableOptions.filter((option) => option.startsWith('pools.'))
    for (const option of reloadableOptions.filter((each) => !inPools.includes(each)))
      expect([option, known.some((path) => path === option || path.startsWith(`${option}.`))]).toEqual([option, true])
  })

  test('docs/configuration.md lists the options that can change', () => {
    const page = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')
    const [, list = ''] = /<!-- reloadable -->\n(.*)\n<!-- \/reloadable -->/.exec(page) ?? []
    expect(list).toBe(reloadableOptions.map((option) => `\`${option}\``).join(', '))
  })
})
