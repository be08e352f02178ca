import { describe, expect, test } from '@jest/globals'
import { untilArrived } from '../../../../src/kvcache/lmcache/arrived-chunks.ts'
import type { ObjectKey } from '../../../../src/kvcache/lmcache/lmcache-client.ts'
import type { StoredPrefix } from '../../../../src/kvcache/lmcache/stored-prefix.ts'

const chunkTokens = 64
const chunks = ['c0', 'c1', 'c2', 'c3', 'c4']

/** Pieces as `chunk/rank`, with their sizes in the store. */
type Stored = Readonly<Record<string, number>>

const nameOf = ({ chunk_hash_hex, kv_rank }: ObjectKey): string => `${chunk_hash_hex}/${kv_rank}`

interface Wait {
  readonly known: number
  readonly pieces?: StoredPrefix['pieces']
  readonly settleMs?: number
  /** The signal fires during the look after so many. */
  readonly mostLooks?: number
}

/** What is seen of a store that looks like each of these in turn, then like the last; and what each look asked for. */
const arrived = async (
  looks: readonly [Stored, ...Stored[]],
  { known, pieces = [[0, 0]], settleMs = 0, mostLooks = 100 }: Wait,
) => {
  const asked: string[][] = []
  const deadline = new AbortController()
  const locate = async (keys: readonly ObjectKey[]) => {
    if (asked.length === mostLooks) deadline.abort()
    deadline.signal.throwIfAborted()
    const stored: Stored = looks[Math.min(asked.length, looks.length - 1)] ?? {}
    asked.push(keys.map(nameOf))
    return keys.map((key) => {
      const size = stored[nameOf(key)]
      const placements = size === undefined ? [] : [{ instance_id: 'i', tier: 'l2', size_bytes: size }]
      return { key, placements: [{ instance_id: 'i', tier: 'l1', size_bytes: 1 }, ...placements] }
    })
  }
  const seen = await untilArrived(
    { lmcache: { locate }, settleMs },
    { promptTokens: undefined, signal: deadline.signal },
    { stored: { modelRoot: 'm', salt: 's', chunks, pieces, chunkTokens }, known },
  )
  return { ...seen, asked }
}

const whole: Stored = { 'c0/0': 10, 'c1/0': 10, 'c2/0': 10, 'c3/0': 10, 'c4/0': 10 }

describe('untilArrived', () => {
  test.each<[string, Stored, number, { chunks: number; bytes: number }]>([
    ['every chunk of a stored prefix', whole, 0, { chunks: 5, bytes: 50 }],
    ['the chunks before one that is listed', { 'c0/0': 10, 'c1/0': 30, 'c3/0': 20 }, 0, { chunks: 4, bytes: 80 }],
    ['chunks before the first one that is listed', { 'c1/0': 10 }, 0, { chunks: 2, bytes: 20 }],
    ['nothing when none is listed', {}, 0, { chunks: 0, bytes: 0 }],
    ['known chunks that are no longer listed', { 'c3/0': 10, 'c4/0': 10 }, 3, { chunks: 5, bytes: 50 }],
    ['known chunks when none is listed', {}, 3, { chunks: 3, bytes: 0 }],
    ['the bytes of known chunks', { 'c0/0': 10, 'c1/0': 10, 'c2/0': 10 }, 3, { chunks: 3, bytes: 30 }],
  ])('counts %s', async (_name, stored, known, expected) => {
    expect(await arrived([stored], { known })).toMatchObject(expected)
  })

  test('counts a chunk only with all its pieces', async () => {
    const pieces = [
      [0, 0],
      [1, 0],
    ] as const
    const seen = await arrived([{ 'c0/0': 10, 'c0/1': 14, 'c1/0': 10 }], { known: 0, pieces })
    expect(seen).toMatchObject({ chunks: 1, bytes: 24 })
  })

  test('waits while more chunks arrive, and asks only for those still missing', async () => {
    const looks = [{ 'c0/0': 10 }, { 'c0/0': 10, 'c1/0': 10, 'c2/0': 10 }, whole] as const
    const seen = await arrived(looks, { known: 0, settleMs: 20_000 })
    expect(seen).toMatchObject({ chunks: 5, bytes: 50 })
    expect(seen.asked.map(([first]) => first)).toEqual(['c0/0', 'c0/0', 'c2/0'])
  })

  test('counts what has arrived when the signal fires, and rejects where that is nothing', async () => {
    const wait = { known: 0, settleMs: 20_000 }
    const looks = [{ 'c0/0': 10 }, { 'c0/0': 10, 'c1/0': 10 }] as const
    expect(await arrived(looks, { ...wait, mostLooks: 3 })).toMatchObject({ chunks: 2, bytes: 20 })
    await expect(arrived(looks, { ...wait, mostLooks: 0 })).rejects.toThrow('aborted')
  })

  test('asks from the last known chunk on', async () => {
    expect(await arrived([whole], { known: 3 })).toMatchObject({ asked: [['c2/0', 'c3/0', 'c4/0']] })
    expect(await arrived([whole], { known: 0 })).toMatchObject({ asked: [chunks.map((chunk) => `${chunk}/0`)] })
  })
})
