import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { type HttpResponse, model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { createdId, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({ store: 'redis', gateways: 2 })

const create = (text: string): Promise<string> => createdId(stack, { body: { model, prompt: text, max_tokens: 4 } })

const takeTurn = (id: string, text: string) => use(stack, id, { body: { model, prompt: text, max_tokens: 4 } })

const streamTurn = async (id: string, text: string): Promise<HttpResponse> => {
  const body = { model, prompt: text, max_tokens: 16, stream: true }
  const answer = await use(stack, id, { body })
  return answer.text.trimEnd().endsWith('data: [DONE]') ? answer : { ...answer, status: 0 }
}

const forwardedBy = (index: number) => metric(stack, 'requests_total', { outcome: 'forwarded' }, index)

/** Restarts of each gateway. */
const rolls = Number(process.env['ROLLS'] ?? 2)

test('gateways that are replaced under load fail no request, cut no stream and lose no session', async () => {
  const text = 'A conversation that goes on while its gateways are replaced. '
  const unserved: string[] = []
  let isRolling = true
  const converse = async (client: number): Promise<void> => {
    let id = await create(`${text}${client} `)
    for (let turn = 1; isRolling; turn += 1) {
      const ask = turn % 2 === 0 ? takeTurn : streamTurn
      const answer = turn % 4 === 0 ? undefined : await ask(id, `${text}${client} ${turn} `)
      if (answer === undefined) id = await create(`${text}${client} ${turn} `)
      // A turn without the header bypassed the gateways.
      else if (answer.status !== 200 || answer.headers.get('x-session-id') !== id)
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
  for (const index of Array.from({ length: rolls }, () => [0, 1]).flat()) {
    await stack.gateway(index).child.stop({ graceMs: 60_000 })
    await untilUsed(1 - index)
    await stack.restartGateway(index)
    await untilUsed(index)
  }
  isRolling = false
  await Promise.all(clients)
  expect(unserved).toEqual([])
})
