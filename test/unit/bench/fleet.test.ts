import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { wayFigures } from '../../../bench/fleet/figures.ts'
import type { TurnRow } from '../../../bench/fleet/measure-way.ts'
import { halfTimeMs, planConversations, promptTokensOf } from '../../../bench/fleet/workload.ts'
import { writeTrace } from '../../../bench/fleet/write-trace.ts'
import { makePrompt } from '../../../bench/prompts.ts'
import { readTrace } from '../../../playground/replay/trace.ts'

const workload = {
  conversations: 4,
  turns: 3,
  firstTokens: 100,
  moreTokens: 10,
  outputTokens: 6,
  pauseMs: 1000,
  seed: 'a seed',
}

/** A later turn that was answered. */
const row = (fields: Partial<TurnRow>): TurnRow => ({
  conversation: 'conversation-0',
  turn: 2,
  startMs: 0,
  newTokens: 16,
  ttftMs: 100,
  totalMs: 200,
  promptTokens: 116,
  cachedTokens: 100,
  answerTokens: 6,
  cache: '',
  status: 200,
  failure: undefined,
  ...fields,
})

describe('the workload of bench-fleet', () => {
  test('is the same for every way, with pauses from a fifth to thrice their mean', () => {
    const plan = planConversations({ ...workload, conversations: 50 })
    expect(planConversations({ ...workload, conversations: 50 })).toEqual(plan)
    const pauses = plan.flatMap(({ pausesMs }) => pausesMs)
    expect(pauses).toHaveLength(100)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(200)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(3000)
    expect(Math.max(...plan.map(({ startMs }) => startMs))).toBeLessThan(1000)
  })

  test('has its half time between the first turns and the last one', () => {
    const [plan] = planConversations({ ...workload, conversations: 1 })
    const [first = 0, second = 0] = plan?.pausesMs ?? []
    expect(halfTimeMs(planConversations({ ...workload, conversations: 1 }))).toBe((first + second) / 2)
  })

  test('continues each prompt in the next one', () => {
    const vocabulary = { firstId: 0, size: 256 }
    const [first, second] = [1, 2].map((turn) => makePrompt(vocabulary, 'seed', promptTokensOf(workload, turn)))
    expect(second).toHaveLength(116)
    expect(second?.slice(0, 100)).toEqual(first)
  })
})

describe('the figures of bench-fleet', () => {
  const figuresOf = (turns: readonly TurnRow[]) =>
    wayFigures({ turns, durationMs: 1, stormMs: 0, stormFailure: undefined })

  test('count as computed anew what was sent before, in later turns that were answered', () => {
    const { later, first, lastThird } = figuresOf([
      row({ turn: 1, newTokens: 100, promptTokens: 100, cachedTokens: 0 }),
      row({}),
      row({ cachedTokens: 50 }),
      // A cache that holds the answer too makes nothing up for other turns.
      row({ cachedTokens: 106 }),
      row({ failure: 'refused', cachedTokens: 0, ttftMs: undefined }),
    ])
    expect(later).toMatchObject({ turns: 4, failures: 1, anewShare: 50 / 300, ttftMaxMs: 100 })
    expect(first).toMatchObject({ turns: 1, failures: 0, computedShare: 1, anewShare: undefined })
    expect(lastThird).toMatchObject({ turns: 2, anewShare: 0 })
  })

  test('count what x-context-cache said, without its numbers', () => {
    const { later } = figuresOf([
      row({ cache: 'hit; tier=store; tokens=100; load=7ms' }),
      row({ cache: 'hit; tier=store; tokens=90; load=9ms' }),
      row({ cache: 'miss; reason=no_slot' }),
      row({}),
    ])
    expect(later.reasons).toEqual({ 'hit tier=store': 2, 'miss reason=no_slot': 1 })
  })
})

describe('the trace that bench-fleet writes', () => {
  test('names conversations, and the pauses after their answers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fleet-trace-'))
    const file = join(folder, 'trace')
    await writeTrace(
      file,
      [
        row({ conversation: 'a', startMs: 0, promptTokens: 1_000 }),
        row({ conversation: 'b', startMs: 50, promptTokens: 600 }),
        row({ conversation: 'a', startMs: 900, promptTokens: 1_100 }),
      ],
      6,
    )
    const requests = await readTrace(file)
    await rm(folder, { recursive: true })
    expect(requests.map(({ conversation, pauseMs }) => [conversation, pauseMs])).toEqual([
      ['a', undefined],
      ['b', undefined],
      ['a', 700],
    ])
    expect(requests[2]?.blocks.slice(0, 1)).toEqual(requests[0]?.blocks.slice(0, 1))
  })
})
