import { expect, test } from '@jest/globals'
import { createdId, untilTurns, use } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { stack } = useScriptedStack()

/** A ticket names the session's model, here with the character between two fields of the access log: 6 KB of JSON. */
test('a turn with the longest ticket counts', async () => {
  const body = { model: '\u001f'.repeat(1024), prompt: 'hello' }
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)
  expect((await use(stack, id, { body })).status).toBe(200)
  await untilTurns(stack, id, 2)
})
