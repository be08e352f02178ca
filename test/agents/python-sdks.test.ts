// OpenAI's SDKs for Python, unmodified, with responses that are kept.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { newItems } from '../integration/responses/support.ts'
import { untilStored } from '../integration/support/sessions.ts'
import { embeddedPods } from '../integration/support/stack.ts'
import { useStack } from '../integration/support/use-stack.ts'
import { installPythonSdks } from './install-python-sdks.ts'
import { startPythonClient } from './python-client.ts'

const turns = 10
const stack = useStack({
  env: { CTX_RESPONSES_STORE: 'true', CTX_SESSIONS_IMPLICIT_NAMES: 'body.prompt_cache_key' },
  // Whose answers end by themselves: the Agents SDK takes one that reached its limit for an error.
  pods: embeddedPods({ contextTokensPerSlot: 8192, arguments: ['--vocabulary', 'words'] }),
})
let sdks: string
beforeAll(async () => {
  sdks = await installPythonSdks()
}, 1_800_000)

/** Ten turns with tools, each on another pod than the one before. */
const converse = async (by: string, stream: boolean) => {
  const client = startPythonClient({ url: stack.url, sdks, by, stream })
  try {
    const told: Awaited<ReturnType<typeof client.turn>>[] = []
    const pods: (string | null)[] = []
    for (let turn = 1; turn <= turns; turn += 1) {
      const answer = await client.turn(newItems(turn))
      told.push(answer)
      pods.push((await untilStored(stack, answer.session ?? '', turn)).kv.pod)
    }
    return { told, pods }
  } finally {
    await client.end()
  }
}

const expectCached = ({ told, pods }: Awaited<ReturnType<typeof converse>>): void => {
  expect(new Set(told.map(({ session }) => session)).size).toBe(1)
  expect(new Set(pods).size).toBe(2)
  for (const [turn, { cache, tokens }] of told.entries()) {
    const before = told[turn - 1]?.tokens
    expect(cache).toMatch(before === undefined ? /^miss; reason=new_session/ : /^hit; /)
    if (before !== undefined) expect(tokens.cached).toBeGreaterThanOrEqual(0.9 * (before.input + before.output))
  }
}

describe.each([{ stream: false }, { stream: true }])('with stream: $stream', ({ stream }) => {
  test.each(['previous_response_id', 'conversation', 'agents previous_response_id', 'agents conversation'])(
    'by %s only new items are sent, and at least 90 %% of the history is cached',
    async (by) => {
      const conversation = await converse(by, stream)
      expectCached(conversation)
      expect(conversation.told.map(({ items }) => items)).toEqual(
        Array.from({ length: turns }, (_, turn) => newItems(turn + 1).length),
      )
      const bytes = conversation.told.map((each) => each.bytes)
      expect(Math.max(...bytes)).toBeLessThan(2 * Math.min(...bytes))
    },
  )

  // This session lists the items of its conversation, and sends them all itself: the key names the gateway's session.
  test('by OpenAIConversationsSession and a prompt_cache_key at least 90 % of the history is cached', async () => {
    const conversation = await converse('agents session', stream)
    expectCached(conversation)
    const items = Array.from({ length: turns }, (_, turn) => newItems(turn + 1).length)
    expect(conversation.told.at(-1)?.items).toBe(items.reduce((sum, count) => sum + count) + turns - 1)
  })
})
