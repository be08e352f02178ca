import { describe, expect, test } from '@jest/globals'
import { createNoConnector } from '../../../src/kvcache/none/connector.ts'
import { createPrefixCacheConnector } from '../../../src/kvcache/prefix-cache/connector.ts'
import { connectorParts } from '../../support/connector-parts.ts'
import { createContextGateway, type TurnAnswer } from '../../support/context-gateway.ts'
import { cacheStatusOf } from '../../support/decisions.ts'
import { watchedScope } from '../../support/gateway-request.ts'
import type { MemoryKvConnector } from '../../support/memory-kv-connector.ts'

/** A gateway whose connector claims nothing for a turn of a session with stored KV, and what else is asked of it. */
const unclaimingGateway = () => {
  const calls: string[] = []
  const wrapConnector = (connector: MemoryKvConnector): MemoryKvConnector => ({
    ...connector,
    prepare: async (turn, budget) => {
      if (turn.stored === undefined) return connector.prepare(turn, budget)
      return { presence: { kind: 'hit', tier: 'gpu', tokens: turn.stored.tokens }, fields: {} }
    },
    finish: (turn) => {
      calls.push('finish')
      return connector.finish(turn)
    },
    release: (turn) => {
      calls.push('release')
      return connector.release(turn)
    },
  })
  return { gateway: createContextGateway({ wrapConnector }), calls }
}

describe('a turn without a claim', () => {
  test.each<{ name: string; answer: TurnAnswer; turns: number }>([
    { name: 'completed', answer: {}, turns: 2 },
    { name: 'failed', answer: { status: 500 }, turns: 1 },
    { name: 'was left', answer: { complete: false, clientDisconnected: true }, turns: 1 },
  ])('$name ends without a call of the connector', async ({ answer, turns }) => {
    const { gateway, calls } = unclaimingGateway()
    const { id } = await gateway.create()
    const before = await gateway.view(id)
    calls.length = 0

    await gateway.serve(await gateway.use(id), answer)

    expect(calls).toEqual([])
    expect(await gateway.view(id)).toEqual({ ...Object(before), turns, tokens: expect.anything() })
  })

  test('is cancelled without a call of the connector when its client disconnects', async () => {
    const { gateway, calls } = unclaimingGateway()
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
    none: createPrefixCacheConnector({ isolation: 'tenant', prefixCache: { engine: 'vllm' } }, connectorParts()),
    note: 'engine_cache',
  },
])(
  'a session of the connector $name shows that nothing is stored, which only its first turn records',
  async ({ none, note }) => {
    const wrapConnector = (connector: MemoryKvConnector): MemoryKvConnector => ({
      ...connector,
      prepare: (turn, budget) => none.prepare(turn, budget),
    })
    const gateway = createContextGateway({ wrapConnector })
    const { id } = await gateway.create()
    const statuses: unknown[] = []
    for (let turn = 2; turn <= 4; turn += 1) {
      const decision = await gateway.use(id)
      statuses.push(cacheStatusOf(decision))
      await gateway.serve(decision)
    }

    expect(gateway.events.of('offloaded')).toHaveLength(1)
    expect(new Set(statuses)).toEqual(new Set([`none; reason=${note}`]))
    expect(await gateway.view(id)).toMatchObject({ turns: 4, kv: { stored: null, note } })
  },
)
