import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { createdId, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({ store: 'redis', gateways: 2 })

const create = (text: string): Promise<string> => createdId(stack, { body: { model, prompt: text, max_tokens: 4 } })

const takeTurn = (id: string, text: string, headers: Record<string, string> = {}) =>
  use(stack, id, { headers, body: { model, prompt: text, max_tokens: 4 } })

const forwardedBy = (index: number) => metric(stack, 'requests_total', { outcome: 'forwarded' }, index)

test('gateway that drains loses no turn and no create', async () => {
  const text = 'A conversation that goes on while its gateways are replaced. '
  const unserved: string[] = []
  let isRolling = true
  const converse = async (client: number): Promise<void> => {
    let id = await create(`${text}${client} `)
    for (let turn = 1; isRolling; turn += 1) {
      const answer = turn % 4 === 0 ? undefined : await takeTurn(id, `${text}${client} ${turn} `)
      if (answer === undefined) id = await create(`${text}${client} ${turn} `)
      // A turn without the header bypassed the gateways.
      else if (answer.headers.get('x-session-id') !== id)
        unserved.push(`${answer.status} ${answer.headers.get('x-context-cache')} ${answer.text}`)
    }
  }
  /** Resolves once Envoy sends turns to the gateway. */
  const untilUsed = async (index: number): Promise<void> => {
    const before = await forwardedBy(index)
    await eventually(async () => expect(await forwardedBy(index)).toBeGreaterThan(before + 5))
  }
  const clients = Array.from({ length: 6 }, (_, client) => converse(client))
  await Promise.all([untilUsed(0), untilUsed(1)])
  for (const index of [0, 1]) {
    await stack.gateway(index).child.stop({ graceMs: 60_000 })
    await untilUsed(1 - index)
    await stack.restartGateway(index)
    await untilUsed(index)
  }
  isRolling = false
  await Promise.all(clients)
  expect(unserved).toEqual([])
})
