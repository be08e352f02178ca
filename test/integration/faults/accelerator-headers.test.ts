import { expect, test } from '@jest/globals'
import { createdId, untilTurns, use } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { stack, pods } = useScriptedStack({ podCount: 2 })

/** header_to_metadata ignores values of more than 8 KB, and a ticket names the session's model. */
test('a turn with a ticket of more than 8 KB counts', async () => {
  const body = { model: 'm'.repeat(9000), prompt: 'hello' }
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)
  expect((await use(stack, id, { body })).status).toBe(200)
  await untilTurns(stack, id, 2)
})

test('a turn without a gateway is not routed by a header of the client', async () => {
  const body = { model: 'scripted', prompt: 'hello' }
  const id = await createdId(stack, { body })
  await stack.gateway().child.kill()
  const [first, target] = pods
  const before = first?.requests().length ?? 0
  for (let time = 0; time < 20; time++) {
    const headers = { 'x-context-turn-pods': target?.address ?? '' }
    expect((await use(stack, id, { headers, body })).status).toBe(200)
  }
  expect(first?.requests().length).toBeGreaterThan(before)
})
