import { expect, test } from '@jest/globals'
import { type ContextGateway, gatewayWithSession } from '../../support/context-gateway.ts'
import { answerBody } from '../../support/decisions.ts'

test.each<[string, (gateway: ContextGateway, id: string) => Promise<unknown>]>([
  ['is deleted', async (gateway, id) => answerBody(await gateway.remove(id))],
  ['is expired and swept', (gateway) => gateway.sweep(60)],
  [
    'is expired and starts anew',
    async (gateway, id) => {
      gateway.advance(60)
      await gateway.serve(await gateway.use(id), { status: 500 })
    },
  ],
])('the prefix index drops a session that %s', async (_title, end) => {
  const { gateway, id, key } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
  const holders = (): number => gateway.predictor.residentTokens(key).size
  expect(holders()).toBe(1)

  await end(gateway, id)

  expect(holders()).toBe(0)
})
