import { describe, expect, test } from '@jest/globals'
import { presenceStatus } from '../../../src/context/response-headers.ts'

const nothingStored = { kind: 'miss', reason: 'nothing_stored' } as const

describe('x-context-cache', () => {
  test.each([
    {
      name: 'still in the pod',
      presence: { kind: 'hit', tier: 'gpu', tokens: 2944 },
      line: 'hit; tier=gpu; tokens=2944',
    },
    {
      name: 'loaded',
      presence: { kind: 'hit', tier: 'store', tokens: 2944, loadMs: 77 },
      line: 'hit; tier=store; tokens=2944; load=77ms',
    },
    {
      name: 'loaded in a fraction of a millisecond',
      presence: { kind: 'hit', tier: 'store', tokens: 16, loadMs: 0.31 },
      line: 'hit; tier=store; tokens=16; load=0ms',
    },
    {
      name: 'fetched by the engine itself',
      presence: { kind: 'hit', tier: 'store', tokens: 16 },
      line: 'hit; tier=store; tokens=16; load=on-demand',
    },
    { name: 'nothing there yet', presence: nothingStored, line: 'miss; reason=offload_pending' },
    { name: 'lost', presence: { kind: 'miss', reason: 'kv_missing', gone: true }, line: 'miss; reason=kv_missing' },
    { name: 'the engine’s own', presence: { kind: 'miss', reason: 'engine_cache' }, line: 'none; reason=engine_cache' },
  ] as const)('is "$line" for KV that is $name', ({ presence, line }) => {
    expect(presenceStatus(presence, undefined)).toBe(line)
  })

  test('names why nothing was stored, if known', () => {
    expect(presenceStatus(nothingStored, 'offload_failed')).toBe('none; reason=offload_failed')
  })

  test.each([
    { name: 'had to make room', note: 'kv_evicted' },
    { name: 'no pod can load', note: 'kv_stale' },
    { name: 'was lost', note: 'kv_missing' },
  ])('is a miss for KV that $name', ({ note }) => {
    expect(presenceStatus(nothingStored, note)).toBe(`miss; reason=${note}`)
    expect(presenceStatus({ kind: 'hit', tier: 'gpu', tokens: 5 }, note)).toBe('hit; tier=gpu; tokens=5')
  })
})
