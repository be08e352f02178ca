import { describe, expect, test } from '@jest/globals'
import type { FleetSettings } from '../../../../playground/replay/fleet-settings.ts'
import { replayTrace } from '../../../../playground/replay/replay-trace.ts'
import type { TraceRequest } from '../../../../playground/replay/trace.ts'
import type { PolicyName } from '../../../../src/routing/policies.ts'
import { traceRequest } from './requests.ts'
import { settings } from './settings.ts'

const replay = (
  requests: readonly TraceRequest[],
  change: Partial<FleetSettings> = {},
  policy: PolicyName = 'round-robin',
) => replayTrace(requests, { settings: { ...settings, ...change }, policy })

describe('a replay', () => {
  test('one prompt takes as long as its tokens, whenever its trace begins', () => {
    expect(replay([traceRequest([1, 2], { timestampMs: 1.7e12, inputTokens: 700, outputTokens: 50 })])).toMatchObject({
      requests: 1,
      conversations: 1,
      blockHitRatio: 0,
      ttftMs: { mean: 700, p50: 700, p90: 700, p99: 700 },
      prefillSeconds: 0.7,
      loadSeconds: 0,
    })
  })

  test('prompts wait for those before them, in one pod', () => {
    const requests = [
      traceRequest([1]),
      traceRequest([2], { timestampMs: 100 }),
      traceRequest([3], { timestampMs: 5_000 }),
    ]
    const { ttftMs, utilisation } = replay(requests)
    expect(ttftMs).toEqual({ mean: (512 + 924 + 512) / 3, p50: 512, p90: 924, p99: 924 })
    expect(utilisation).toBeCloseTo((3 * 512) / 5_000)
  })

  test('prompts run side by side, in two pods', () => {
    const { ttftMs, balance } = replay([traceRequest([1]), traceRequest([2])], { pods: 2 })
    expect(ttftMs).toMatchObject({ mean: 512, p99: 512 })
    expect(balance).toBe(1)
  })

  test('a pod computes only what it does not hold', () => {
    const requests = [traceRequest([1, 2]), traceRequest([1, 2, 3], { timestampMs: 9_000 })]
    expect(replay(requests, { storeBlocks: 0 })).toMatchObject({
      conversations: 1,
      blockHitRatio: 2 / 5,
      podHitRatio: 2 / 5,
      ttftMs: { p50: 512, p99: 1024 },
    })
  })

  test('another pod loads what the store holds, and computes the rest', () => {
    const requests = [traceRequest([1, 2]), traceRequest([1, 2, 3], { timestampMs: 9_000 })]
    const result = replay(requests, { pods: 2 })
    expect(result).toMatchObject({ blockHitRatio: 2 / 5, podHitRatio: 0 })
    expect(result.ttftMs.p50).toBeCloseTo(10 + 102.4 + 512)
    expect(result.loadSeconds).toBeCloseTo(0.1124)
  })

  test('a load that would take longer than computing is not made', () => {
    const requests = [traceRequest([1, 2]), traceRequest([1, 2, 3], { timestampMs: 9_000 })]
    expect(replay(requests, { pods: 2, loadTokensPerSecond: 900 })).toMatchObject({
      blockHitRatio: 0,
      loadSeconds: 0,
      ttftMs: { p99: 1536 },
    })
  })

  test('a store without room forgets what was used longest ago', () => {
    const requests = [1, 2, 3, 1].map((block, index) => traceRequest([block], { timestampMs: index * 2_000 }))
    const hits = (storeBlocks: number): number => replay(requests, { pods: 2, podBlocks: 0, storeBlocks }).blockHitRatio
    expect([0, 2, 3].map(hits)).toEqual([0, 0, 1 / 4])
  })

  test('a prompt that is held in full computes its last token', () => {
    const requests = [traceRequest([1]), traceRequest([1], { timestampMs: 9_000 })]
    expect(replay(requests)).toMatchObject({ blockHitRatio: 1 / 2, ttftMs: { p50: 1, p99: 512 } })
  })

  test('the time scale lets requests come closer', () => {
    const requests = [traceRequest([1]), traceRequest([2], { timestampMs: 1_000 })]
    expect(replay(requests, { timeScale: 0.25 }).ttftMs.p99).toBe(512 + 512 - 250)
  })

  test('predicted-ttft goes where the conversation lies, and elsewhere when the queue there is long', () => {
    const first = [traceRequest([1, 2, 3]), traceRequest([10, 11, 12])]
    const second = traceRequest([1, 2, 3, 4], { timestampMs: 9_000 })
    const calm = replay([...first, second], { pods: 2 }, 'predicted-ttft')
    expect(calm).toMatchObject({ podHitRatio: 3 / 10, loadSeconds: 0 })
    const blocks = Array.from({ length: 20 }, (_none, index) => 50 + index)
    const busy = [
      ...first,
      traceRequest([1, 2, 3, ...blocks], { timestampMs: 9_000 }),
      traceRequest([1, 2, 3, 4], { timestampMs: 9_001 }),
    ]
    const moved = replay(busy, { pods: 2 }, 'predicted-ttft')
    expect(moved.loadSeconds).toBeCloseTo(0.01 + 0.1536)
    expect(moved.ttftMs.p50).toBeLessThan(1_600)
  })

  test('gives the same each time, also where chance decides', () => {
    const requests = Array.from({ length: 200 }, (_none, index) =>
      traceRequest([index, index + 1], { timestampMs: index * 97 }),
    )
    const twice = [1, 2].map(() => replay(requests, { pods: 4 }, 'random'))
    expect(twice[0]).toEqual(twice[1])
    expect(twice[0]?.requests).toBe(200)
  })
})
