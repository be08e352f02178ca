import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { createdId, untilStored, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({ store: 'redis', gateways: 2 })

const create = (text: string): Promise<string> => createdId(stack, { body: { model, prompt: text, max_tokens: 4 } })

const takeTurn = (id: string, text: string, headers: Record<string, string> = {}) =>
  use(stack, id, { headers, body: { model, prompt: text, max_tokens: 4 } })

const forwardedBy = (index: number) => metric(stack, 'requests_total', { outcome: 'forwarded' }, index)

test('two gateways behind one Envoy serve the same sessions', async () => {
  const text = 'A conversation that both gateways know, and that each of them can go on with. '
  const id = await create(text)
  await untilStored(stack, id, 1)
  for (let turn = 2; turn <= 9; turn += 1) {
    const response = await takeTurn(
      id,
      `${text}${'And more. '.repeat(turn)}`,
      turn % 2 === 0 ? {} : { 'routing-strategy': 'round-robin' },
    )
    expect(response.status).toBe(200)
    expect(response.headers.get('x-context-cache')).toMatch(/^hit; /)
    await untilStored(stack, id, turn)
  }
  // Envoy chooses by chance between gateways that have as little to do.
  await eventually(async () => {
    expect((await takeTurn(id, text)).status).toBe(200)
    expect(await forwardedBy(0)).toBeGreaterThan(0)
    expect(await forwardedBy(1)).toBeGreaterThan(0)
  })
})

test('sessions survive the end of one gateway and of both', async () => {
  const text = 'A conversation that outlives the gateways that it began with. '
  const id = await create(text)
  await untilStored(stack, id, 1)
  for (const index of [0, 1]) {
    await stack.gateway(index).child.kill()
    const response = await eventually(async () => {
      const tried = await takeTurn(id, `${text}Go on without gateway ${index}. `)
      expect(tried.headers.get('x-context-cache')).toMatch(/^hit; /)
      return tried
    })
    expect(response.status).toBe(200)
    await stack.restartGateway(index)
  }
  await stack.gateway(0).child.stop()
  await stack.gateway(1).child.stop()
  await stack.restartGateway(0)
  await stack.restartGateway(1)
  await eventually(async () => {
    const response = await takeTurn(id, `${text}Both are new now. `)
    expect(response.headers.get('x-session-id')).toBe(id)
    expect(response.headers.get('x-context-cache')).toMatch(/^hit; /)
  })
})

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
    await stack.gateway(index).child.stop()
    await untilUsed(1 - index)
    await stack.restartGateway(index)
    await untilUsed(index)
  }
  isRolling = false
  await Promise.all(clients)
  expect(unserved).toEqual([])
})
