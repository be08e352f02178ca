import { expect, test } from '@jest/globals'
import { createdId, untilTurns, use } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { stack, pods } = useScriptedStack({ podCount: 2 })

/** A ticket names the session's model, here with the character between two fields of the access log: 6 KB of JSON. */
test('a turn with the longest ticket counts', async () => {
  const body = { model: '\u001f'.repeat(1024), prompt: 'hello' }
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
