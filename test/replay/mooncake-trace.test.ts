import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { FleetSettings } from '../../playground/replay/fleet-settings.ts'
import { parseReplayOptions } from '../../playground/replay/replay-options.ts'
import type { ReplayResult } from '../../playground/replay/replay-record.ts'
import { replayTrace } from '../../playground/replay/replay-trace.ts'
import { readTrace, type TraceRequest } from '../../playground/replay/trace.ts'
import { fleetLoad, surveyTrace } from '../../playground/replay/trace-facts.ts'
import { type PolicyName, policyNames } from '../../src/routing/policies.ts'

const tracePath = fileURLToPath(new URL('traces/conversation_trace.jsonl.gz', import.meta.url))

const { settings } = parseReplayOptions([tracePath])

const replayedRequests = 2_000

describe('the trace of a chat service', () => {
  let trace: readonly TraceRequest[] = []
  beforeAll(async () => {
    trace = await readTrace(tracePath)
  })

  const first = () => trace.slice(0, replayedRequests)
  const replay = (policy: PolicyName, change: Partial<FleetSettings>): ReplayResult =>
    replayTrace(first(), { policy, settings: { ...settings, ...change } })

  test.each([
    { blocks: Number.POSITIVE_INFINITY, hits: 0.3664 },
    { blocks: 10_000, hits: 0.2112 },
  ])('has $hits of its blocks in a cache of $blocks blocks', ({ blocks, hits }) => {
    const facts = surveyTrace(trace, { storeBlocks: blocks })
    expect(facts).toMatchObject({ requests: 12_031, blocks: 288_500 })
    expect(facts.storeHitRatio).toBeCloseTo(hits, 4)
  })

  test('a store that many pods share has the hits of one cache', () => {
    const { blockHitRatio, requests } = replay('predicted-ttft', { podBlocks: Number.POSITIVE_INFINITY })
    expect(requests).toBe(replayedRequests)
    expect(blockHitRatio).toBeCloseTo(surveyTrace(first(), { storeBlocks: 0 }).highestHitRatio, 2)
  })

  test('at 80 % load, predicted-ttft has the lowest TTFT of all policies, mean and p90', () => {
    const { least } = fleetLoad(surveyTrace(first(), { storeBlocks: 0 }), settings)
    const results = policyNames.map((policy) => replay(policy, { timeScale: least / 0.8 }))
    const [predicted, ...others] = results
    expect(predicted?.policy).toBe('predicted-ttft')
    expect(predicted?.ttftMs.mean).toBeLessThan(Math.min(...others.map(({ ttftMs }) => ttftMs.mean)))
    expect(predicted?.ttftMs.p90).toBeLessThan(Math.min(...others.map(({ ttftMs }) => ttftMs.p90)))
  })
})
