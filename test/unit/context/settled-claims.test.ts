import { describe, expect, test } from '@jest/globals'
import { settledClaim } from '../../../src/kvcache/kv-connector.ts'
import { createNoConnector } from '../../../src/kvcache/no-connector.ts'
import { createPrefixCacheConnector } from '../../../src/kvcache/prefix-cache.ts'
import { createContextGateway, type TurnAnswer } from '../../support/context-gateway.ts'
import { cacheStatusOf } from '../../support/decisions.ts'
import { watchedScope } from '../../support/gateway-request.ts'
import type { MemoryKvConnector } from '../../support/memory-kv-connector.ts'

/** A gateway whose connector settles every turn of a session that has stored KV, and what else is asked of it. */
const settlingGateway = () => {
  const calls: string[] = []
  const wrapConnector = (connector: MemoryKvConnector): MemoryKvConnector => ({
    ...connector,
    attach: async (turn, kv, budget) => {
      if (kv === undefined) return connector.attach(turn, kv, budget)
      return { presence: { kind: 'resident', tokens: kv.tokens }, fields: {}, claim: settledClaim }
    },
    offload: (request) => {
      calls.push('offload')
      return connector.offload(request)
    },
    detach: (turn, claim, signal) => {
      calls.push('detach')
      return connector.detach(turn, claim, signal)
    },
  })
  return { gateway: createContextGateway({ wrapConnector }), calls }
}

describe('a turn with a settled claim', () => {
  test.each<{ name: string; answer: TurnAnswer; turns: number }>([
    { name: 'completed', answer: {}, turns: 2 },
    { name: 'failed', answer: { status: 500 }, turns: 1 },
    { name: 'was left', answer: { complete: false, clientDisconnected: true }, turns: 1 },
  ])('$name ends without a call of the connector', async ({ answer, turns }) => {
    const { gateway, calls } = settlingGateway()
    const { id } = await gateway.create()
    const before = await gateway.view(id)
    calls.length = 0

    await gateway.serve(await gateway.use(id), answer)

    expect(calls).toEqual([])
    expect(await gateway.view(id)).toEqual({ ...Object(before), turns, tokens: expect.anything() })
  })

  test('is cancelled without a call of the connector when its client disconnects', async () => {
    const { gateway, calls } = settlingGateway()
    const { id } = await gateway.create()
    calls.length = 0
    const scope = watchedScope()
    scope.leave()

    await gateway.send({ path: '/v1/chat/completions', headers: { 'x-session-id': id } }, scope)

    expect(calls).toEqual([])
    expect(await gateway.view(id)).toMatchObject({ turns: 1 })
  })
})

test.each([
  { name: 'none', none: createNoConnector(), note: 'no_connector' },
  {
    name: 'prefix-cache',
    none: createPrefixCacheConnector({ isolation: 'tenant', secret: 'a secret of the tests', engine: 'vllm' }),
    note: 'engine_cache',
  },
])('a session of the connector $name is offloaded once', async ({ none, note }) => {
  const calls: string[] = []
  const wrapConnector = (connector: MemoryKvConnector): MemoryKvConnector => ({
    ...connector,
    attach: (turn, kv, budget) => none.attach(turn, kv, budget),
    offload: (request) => {
      calls.push('offload')
      return none.offload(request)
    },
  })
  const gateway = createContextGateway({ wrapConnector })
  const { id } = await gateway.create()
  const statuses: unknown[] = []
  for (let turn = 2; turn <= 4; turn += 1) {
    const decision = await gateway.use(id)
    statuses.push(cacheStatusOf(decision))
    await gateway.serve(decision)
  }

  expect(calls).toEqual(['offload'])
  expect(new Set(statuses)).toEqual(new Set([`none; reason=${note}`]))
  expect(await gateway.view(id)).toMatchObject({ turns: 4, kv: { stored: null, note } })
})
