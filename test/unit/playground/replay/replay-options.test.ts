import { describe, expect, test } from '@jest/globals'
import { parseReplayOptions } from '../../../../playground/replay/replay-options.ts'
import { ReplayError } from '../../../../playground/replay/trace.ts'
import { policyNames } from '../../../../src/routing/policies.ts'

describe('the options of replay', () => {
  test('have defaults when none is given', () => {
    expect(parseReplayOptions(['trace.gz'])).toEqual({
      tracePath: 'trace.gz',
      policies: ['predicted-ttft'],
      jsonPath: undefined,
      settings: {
        pods: 8,
        podBlocks: 2_000,
        storeBlocks: Number.POSITIVE_INFINITY,
        prefillTokensPerSecond: 10_000,
        loadTokensPerSecond: 100_000,
        decodeTokensPerSecond: 20,
        timeScale: 1,
      },
    })
  })

  test.each([
    { args: ['--pods', '16'], settings: { pods: 16 } },
    {
      args: ['--pod-blocks=unlimited', '--store-blocks=0'],
      settings: { podBlocks: Number.POSITIVE_INFINITY, storeBlocks: 0 },
    },
    { args: ['--prefill-tokens-per-second=2500.5'], settings: { prefillTokensPerSecond: 2500.5 } },
    { args: ['--load-tokens-per-second=1000'], settings: { loadTokensPerSecond: 1_000 } },
    { args: ['--decode-tokens-per-second=55'], settings: { decodeTokensPerSecond: 55 } },
    { args: ['--time-scale=.5'], settings: { timeScale: 0.5 } },
    { args: ['--time-scale=0.8700936865536557'], settings: { timeScale: 0.8700936865536557 } },
    {
      args: ['--slots=2'],
      settings: {
        slots: { perPod: 2, processors: Number.POSITIVE_INFINITY, turnOverheadMs: 0, waitsForAnswers: false },
      },
    },
    {
      args: ['--slots=4', '--processors=2', '--turn-overhead-ms=50', '--wait-for-answers'],
      settings: { slots: { perPod: 4, processors: 2, turnOverheadMs: 50, waitsForAnswers: true } },
    },
    { args: ['--slots=unlimited'], settings: { slots: undefined } },
  ])('set the fleet: $args', ({ args, settings }) => {
    expect(parseReplayOptions([...args, 'trace'])).toMatchObject({ settings })
  })

  test.each([
    { policy: 'random', policies: ['random'] },
    { policy: 'prefix-cache, random,prefix-cache', policies: ['prefix-cache', 'random'] },
    { policy: 'all', policies: policyNames },
  ])('name policies: $policy', ({ policy, policies }) => {
    const options = parseReplayOptions(['trace', '--policy', policy, '--json=out'])
    expect(options).toMatchObject({ policies, jsonPath: 'out' })
  })

  test.each([
    { args: [], message: 'needs a trace file' },
    { args: ['a', 'b'], message: 'The argument b is one too many.' },
    { args: ['a', '--polcy=x'], message: 'Did you mean --policy?' },
    { args: ['a', '--pods=0'], message: '--pods must be a whole number from 1 to 1000, not "0"' },
    { args: ['a', '--pods=2.5'], message: '--pods' },
    { args: ['a', '--pods=1001'], message: '--pods' },
    { args: ['a', '--store-blocks=lots'], message: '--store-blocks must be a whole number from 0, or unlimited' },
    { args: ['a', '--pod-blocks=-1'], message: '--pod-blocks' },
    { args: ['a', '--time-scale=0'], message: '--time-scale must be a number above 0, not "0"' },
    { args: ['a', '--time-scale='], message: '--time-scale' },
    { args: ['a', '--load-tokens-per-second=1e9999'], message: '--load-tokens-per-second' },
    { args: ['a', '--slots=0'], message: '--slots must be a whole number from 1 to 1000, or unlimited' },
    { args: ['a', '--slots=1', '--turn-overhead-ms=-1'], message: '--turn-overhead-ms' },
    { args: ['a', '--processors=2'], message: 'go with --slots' },
    { args: ['a', '--turn-overhead-ms=2'], message: 'go with --slots' },
    { args: ['a', '--wait-for-answers'], message: 'go with --slots' },
    { args: ['a', '--policy=best'], message: '--policy knows predicted-ttft, ' },
    { args: ['a', '--policy='], message: '--policy knows' },
    { args: ['a', '--speed=9'], message: 'There is no option --speed.' },
  ])('are refused in words: $args', ({ args, message }) => {
    expect(() => parseReplayOptions(args)).toThrow(ReplayError)
    expect(() => parseReplayOptions(args)).toThrow(message)
  })
})
