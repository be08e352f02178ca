import { describe, expect, test } from '@jest/globals'
import { type ContextGateway, gatewayWithSession } from '../../support/context-gateway.ts'
import { answerBody } from '../../support/decisions.ts'

const withSession = async () => {
  const { gateway, id, key } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
  return { gateway, id, holders: () => gateway.predictor.residentTokens(key).size }
}

const rows: readonly {
  readonly name: string
  readonly end: (gateway: ContextGateway, id: string) => Promise<unknown>
}[] = [
  {
    name: 'is deleted',
    end: async (gateway, id) => answerBody(await gateway.remove(id)),
  },
  {
    name: 'is expired and swept',
    end: async (gateway) => {
      await gateway.sweep(60)
    },
  },
  {
    name: 'is expired and starts anew',
    end: async (gateway, id) => {
      gateway.advance(60)
      await gateway.serve(await gateway.use(id), { status: 500 })
    },
  },
]

describe('the prefix index drops a session that', () => {
  test.each(rows)('$name', async ({ end }) => {
    const { gateway, id, holders } = await withSession()
    expect(holders()).toBe(1)

    await end(gateway, id)

    expect(holders()).toBe(0)
  })
})
