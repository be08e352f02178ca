import { describe, expect, test } from '@jest/globals'
import { missStatus, noneStatus, presenceStatus } from '../../../src/context/response-headers.ts'

describe('x-context-cache', () => {
  test.each([
    { name: 'still in the pod', presence: { kind: 'resident', tokens: 2944 }, line: 'hit; tier=gpu; tokens=2944' },
    {
      name: 'loaded',
      presence: { kind: 'loaded', tokens: 2944, loadMs: 77 },
      line: 'hit; tier=store; tokens=2944; load=77ms',
    },
    {
      name: 'loaded in a fraction of a millisecond',
      presence: { kind: 'loaded', tokens: 16, loadMs: 0.31 },
      line: 'hit; tier=store; tokens=16; load=0ms',
    },
    { name: 'nothing there yet', presence: { kind: 'empty' }, line: 'miss; reason=offload_pending' },
    { name: 'lost', presence: { kind: 'missing' }, line: 'miss; reason=kv_missing' },
    { name: 'of another engine', presence: { kind: 'incompatible' }, line: 'miss; reason=kv_incompatible' },
    { name: 'too slow', presence: { kind: 'timed-out' }, line: 'miss; reason=load_timeout' },
    { name: 'refused', presence: { kind: 'failed', cause: new Error('x') }, line: 'miss; reason=load_failed' },
    { name: 'full', presence: { kind: 'no-room' }, line: 'miss; reason=no_slot' },
  ] as const)('is "$line" for KV that is $name', ({ presence, line }) => {
    expect(presenceStatus(presence, undefined)).toBe(line)
  })

  test('names why nothing was stored, if known', () => {
    expect(presenceStatus({ kind: 'empty' }, 'offload_failed')).toBe('none; reason=offload_failed')
  })

  test.each([
    { name: 'had to make room', note: 'kv_evicted' },
    { name: 'no pod can load', note: 'kv_stale' },
  ])('is a miss for KV that $name', ({ note }) => {
    expect(presenceStatus({ kind: 'empty' }, note)).toBe(`miss; reason=${note}`)
    expect(presenceStatus({ kind: 'resident', tokens: 5 }, note)).toBe('hit; tier=gpu; tokens=5')
  })

  test('is a hit whatever an earlier turn noted', () => {
    expect(presenceStatus({ kind: 'resident', tokens: 5 }, 'offload_failed')).toBe('hit; tier=gpu; tokens=5')
  })

  test('differs for a miss and for a session without KV', () => {
    expect(missStatus('session_expired')).toBe('miss; reason=session_expired')
    expect(noneStatus('store_unavailable')).toBe('none; reason=store_unavailable')
  })
})
