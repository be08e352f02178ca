import { expect } from '@jest/globals'
import { newItems, type Sentences } from '../integration/responses/support.ts'
import { untilStored } from '../integration/support/sessions.ts'
import type { Stack } from '../integration/support/stack.ts'
import { startPythonClient } from './python-client.ts'

export const turns = 10

export interface PythonConversation {
  readonly stack: Stack
  /** Folder of the SDKs. */
  readonly sdks: string
  readonly by: string
  readonly stream: boolean
  readonly model: string
  /** Default: few. */
  readonly sentences?: Sentences
}

/** Ten turns with tools, each on another pod than the one before, start from the KV of all that went before. */
export const takePythonTurns = async ({ stack, sentences, ...options }: PythonConversation) => {
  const client = startPythonClient({ url: stack.url, ...options })
  try {
    const told: Awaited<ReturnType<typeof client.turn>>[] = []
    const pods: (string | null)[] = []
    for (let turn = 1; turn <= turns; turn += 1) {
      const answer = await client.turn(newItems(turn, sentences))
      told.push(answer)
      pods.push((await untilStored(stack, answer.session ?? '', turn)).kv.pod)
    }
    expect(new Set(told.map(({ session }) => session)).size).toBe(1)
    expect(new Set(pods).size).toBe(2)
    for (const [turn, { cache, tokens }] of told.entries()) {
      const before = told[turn - 1]?.tokens
      expect(cache).toMatch(before === undefined ? /^miss; reason=new_session/ : /^hit; /)
      if (before !== undefined) expect(tokens.cached).toBeGreaterThanOrEqual(0.9 * (before.input + before.output))
    }
    return told
  } finally {
    await client.end()
  }
}

/** How many items each turn adds. */
export const itemsOfTurns = Array.from({ length: turns }, (_, turn) => newItems(turn + 1).length)
