import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import type { FleetSettings } from '../../playground/replay/fleet-settings.ts'
import { readTrace } from '../../playground/replay/read-trace.ts'
import { parseReplayArguments } from '../../playground/replay/replay-options.ts'
import type { ReplayResult } from '../../playground/replay/replay-record.ts'
import { replayTrace } from '../../playground/replay/replay-trace.ts'
import { createTraceSurvey, fleetLoad } from '../../playground/replay/trace-facts.ts'
import type { PolicyName } from '../../src/routing/policies.ts'

const tracePath = fileURLToPath(new URL('traces/conversation_trace.jsonl.gz', import.meta.url))

const defaults = (): FleetSettings => {
  const read = parseReplayArguments([tracePath])
  if (read.kind !== 'replay') throw new Error('the command takes a trace alone')
  return read.options.settings
}
const settings = defaults()

const replay = (policy: PolicyName, change: Partial<FleetSettings>): Promise<ReplayResult> =>
  replayTrace(readTrace(tracePath), { policy, settings: { ...settings, ...change } })

const others = ['prefix-cache', 'session-affinity', 'least-request', 'least-kv-cache', 'round-robin', 'random'] as const

/** Makes the trace take this share of the fleet's prefill time, if everything is reused that can be. */
const timeScaleFor = async (pods: number, load: number): Promise<number> => {
  const survey = createTraceSurvey({ storeBlocks: 0 })
  for await (const request of readTrace(tracePath)) survey.add(request)
  return fleetLoad(survey.facts(), { ...settings, pods }).least / load
}

describe('the trace of a chat service', () => {
  test.each([
    { blocks: Number.POSITIVE_INFINITY, hits: 0.3664 },
    { blocks: 50_000, hits: 0.3546 },
    { blocks: 10_000, hits: 0.2112 },
    { blocks: 1_000, hits: 0.0445 },
  ])('has $hits of its blocks in a cache of $blocks blocks', async ({ blocks, hits }) => {
    const survey = createTraceSurvey({ storeBlocks: blocks })
    for await (const request of readTrace(tracePath)) survey.add(request)
    expect(survey.facts()).toMatchObject({ requests: 12_031, blocks: 288_500 })
    expect(survey.facts().storeHitRatio).toBeCloseTo(hits, 4)
    // Requests of the same moment wait for each other, and keep what they found meanwhile.
    const quick = { pods: 1, podBlocks: blocks, storeBlocks: 0, prefillTokensPerSecond: 1_000_000 }
    expect((await replay('round-robin', quick)).blockHitRatio).toBeCloseTo(hits, 2)
  })

  test('finds as much in a store that many pods share', async () => {
    const { blockHitRatio, requests } = await replay('predicted-ttft', { podBlocks: Number.POSITIVE_INFINITY })
    expect(requests).toBe(12_031)
    expect(blockHitRatio).toBeCloseTo(0.366, 3)
  })

  test('at 80 % load, nine of ten turns wait at most 0.3 times as long under predicted-ttft as under session-affinity', async () => {
    const timeScale = await timeScaleFor(8, 0.8)
    const predicted = await replay('predicted-ttft', { timeScale })
    const affinity = await replay('session-affinity', { timeScale })
    expect(predicted.utilisation).toBeCloseTo(0.8, 1)
    expect(predicted.ttftMs.p90 / affinity.ttftMs.p90).toBeLessThanOrEqual(0.3)
  })

  test.each([
    { pods: 4, load: 0.1 },
    { pods: 4, load: 0.95 },
    { pods: 8, load: 0.5 },
    { pods: 8, load: 0.8 },
    { pods: 16, load: 0.1 },
    { pods: 16, load: 0.95 },
  ])(
    'has its first tokens soonest under predicted-ttft: $pods pods, load $load',
    async ({ pods, load }) => {
      const timeScale = await timeScaleFor(pods, load)
      const predicted = await replay('predicted-ttft', { pods, timeScale })
      const rest: ReplayResult[] = []
      for (const policy of others) rest.push(await replay(policy, { pods, timeScale }))
      expect(predicted.ttftMs.mean).toBeLessThan(Math.min(...rest.map(({ ttftMs }) => ttftMs.mean)))
      expect(predicted.ttftMs.p90).toBeLessThan(Math.min(...rest.map(({ ttftMs }) => ttftMs.p90)))
    },
    120_000,
  )
})
