import { describe, expect, test } from '@jest/globals'
import type { FleetSettings, SlotSettings } from '../../../../../playground/replay/fleet-settings.ts'
import { replayWithSlots } from '../../../../../playground/replay/slots/replay-slots.ts'
import type { TraceRequest } from '../../../../../playground/replay/trace.ts'
import { traceRequest } from '../requests.ts'
import { settings } from '../settings.ts'

const oneSlot: SlotSettings = {
  perPod: 1,
  processors: Number.POSITIVE_INFINITY,
  turnOverheadMs: 0,
  waitsForAnswers: false,
}

const replay = async (
  requests: readonly TraceRequest[],
  change: Partial<FleetSettings> = {},
  slots: Partial<SlotSettings> = {},
) => {
  const all = { ...settings, podBlocks: 0, ...change }
  const result = await replayWithSlots(requests, {
    settings: all,
    policy: 'predicted-ttft',
    slots: { ...oneSlot, ...slots },
  })
  if (result.slots === undefined) throw new Error('no figures of slots')
  return { ...result, ...result.slots }
}

describe('a replay with slots', () => {
  test('a turn takes as long as its prompt, a token and what it takes beside that, whenever its trace begins', async () => {
    const request = traceRequest([1, 2], { timestampMs: 1.7e12, inputTokens: 700, outputTokens: 50 })
    const { first, ...result } = await replay([request], {}, { turnOverheadMs: 30 })
    expect(first.ttftMs.max).toBeCloseTo(30 + 699 + 10, 2)
    expect(first).toMatchObject({ turns: 1, anewShare: 0, waitMs: { p50: 0, p90: 0 }, withoutSlot: 0 })
    expect(result).toMatchObject({ requests: 1, conversations: 1, blockHitRatio: 0 })
    expect(result.later.turns).toBe(0)
  })

  test('turns wait for a slot until the turn before them is saved', async () => {
    const requests = [traceRequest([1], { outputTokens: 1 }), traceRequest([2], { outputTokens: 1 })]
    const { first } = await replay(requests)
    const savedMs = 511 + 10 + 10 + 51.3
    expect(first.waitMs.p90).toBeCloseTo(savedMs)
    expect(first.ttftMs.p50).toBeCloseTo(521)
    expect(first.ttftMs.max).toBeCloseTo(savedMs + 521)
  })

  test('prompts of one pod advance together', async () => {
    const { first } = await replay([traceRequest([1]), traceRequest([2])], {}, { perPod: 3 })
    expect(first.ttftMs.p50).toBeCloseTo(511 * 2 + 10)
    expect(first.waitMs.p90).toBe(0)
  })

  test('pods share processors', async () => {
    const requests = [traceRequest([1]), traceRequest([2])]
    const alone = await replay(requests, { pods: 2 })
    const shared = await replay(requests, { pods: 2 }, { processors: 1 })
    expect(alone.first.ttftMs.max).toBeCloseTo(521)
    expect(shared.first.ttftMs.max).toBeCloseTo(2 * 521)
  })

  describe('a later turn', () => {
    const other = traceRequest([11, 12], { timestampMs: 5_000 })
    const turns = [traceRequest([1, 2]), traceRequest([1, 2, 3], { timestampMs: 9_000 })] as const

    test('computes what it adds, where the slot holds its conversation', async () => {
      const { later, ...result } = await replay(turns)
      expect(later).toMatchObject({ turns: 1, anewShare: 0 })
      expect(later.ttftMs.max).toBeCloseTo(521)
      expect(result).toMatchObject({ blockHitRatio: 2 / 5, podHitRatio: 2 / 5 })
    })

    test('loads what another conversation displaced', async () => {
      const { later, ...result } = await replay([turns[0], other, turns[1]])
      expect(later.anewShare).toBe(0)
      expect(later.ttftMs.max).toBeCloseTo(10 + 102.4 + 521)
      expect(result).toMatchObject({ blockHitRatio: 2 / 7, podHitRatio: 0 })
    })

    test('computes all of it anew without a store', async () => {
      const { later } = await replay([turns[0], other, turns[1]], { storeBlocks: 0 })
      expect(later.anewShare).toBe(1)
      expect(later.ttftMs.max).toBeCloseTo(1_535 + 10)
    })

    test('computes anew the part that its conversation had in another way', async () => {
      const changed = traceRequest([1, 4, 5], { timestampMs: 9_000, conversation: 'a' })
      const { later } = await replay([traceRequest([1, 2], { conversation: 'a' }), changed])
      expect(later.ttftMs.max).toBeCloseTo(1_023 + 10)
      expect(later.anewShare).toBe(0)
    })

    test('comes when the trace says, or after the answer and its pause', async () => {
      const early = traceRequest([1, 2, 3], { timestampMs: 100, pauseMs: 3_000 })
      const open = await replay([turns[0], early])
      const closed = await replay([turns[0], early], {}, { waitsForAnswers: true })
      expect(open.later.ttftMs.max).toBeGreaterThan(1_000)
      expect(closed.later.ttftMs.max).toBeCloseTo(521)
    })
  })

  test('a turn that waited for too long goes on without a slot, and computes all', async () => {
    const long = traceRequest([1], { outputTokens: 12_000 })
    const { first } = await replay([long, traceRequest([2], { timestampMs: 10, outputTokens: 1 })])
    expect(first.withoutSlot).toBe(1)
    expect(first.waitMs.p90).toBeCloseTo(120_000 - 30_000 - 1_000, -1)
  })

  test('gives the same each time', async () => {
    const requests = Array.from({ length: 100 }, (_none, index) =>
      traceRequest([index % 20, 50 + (index % 20), index], { timestampMs: index * 97, conversation: `${index % 20}` }),
    )
    const twice = [await replay(requests, { pods: 3 }), await replay(requests, { pods: 3 })]
    expect(twice[0]).toEqual(twice[1])
    expect(twice[0]?.requests).toBe(100)
  })
})
