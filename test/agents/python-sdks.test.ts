// OpenAI's SDKs for Python, unmodified, with responses that are kept.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { model } from '../integration/support/client.ts'
import { embeddedPods } from '../integration/support/stack.ts'
import { useStack } from '../integration/support/use-stack.ts'
import { installPythonSdks } from './install-python-sdks.ts'
import { itemsOfTurns, takePythonTurns, turns } from './ten-python-turns.ts'

const stack = useStack({
  env: { CTX_RESPONSES_STORE: 'true', CTX_SESSIONS_IMPLICIT_NAMES: 'body.prompt_cache_key' },
  // Whose answers end by themselves: the Agents SDK takes one that reached its limit for an error.
  pods: embeddedPods({ contextTokensPerSlot: 8192, arguments: ['--vocabulary', 'words'] }),
})
let sdks: string
beforeAll(async () => {
  sdks = await installPythonSdks()
}, 1_800_000)

const converse = (by: string, stream: boolean) => takePythonTurns({ stack, sdks, by, stream, model })

describe.each([{ stream: false }, { stream: true }])('with stream: $stream', ({ stream }) => {
  test.each(['previous_response_id', 'conversation', 'agents previous_response_id', 'agents conversation'])(
    'by %s only new items are sent, and at least 90 %% of the history is cached',
    async (by) => {
      const told = await converse(by, stream)
      expect(told.map(({ items }) => items)).toEqual(itemsOfTurns)
      const bytes = told.map((each) => each.bytes)
      expect(Math.max(...bytes)).toBeLessThan(2 * Math.min(...bytes))
    },
  )

  // This session lists the items of its conversation, and sends them all itself: the key names the gateway's session.
  test('by OpenAIConversationsSession and a prompt_cache_key at least 90 % of the history is cached', async () => {
    const told = await converse('agents session', stream)
    expect(told.at(-1)?.items).toBe(itemsOfTurns.reduce((sum, count) => sum + count) + turns - 1)
  })
})
