import { beforeEach, describe, expect, test } from '@jest/globals'
import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'

/** A ledger for one test, and two ways into it. */
export interface ChunkLedgerBed {
  readonly ledger: ChunkLedger
  /** The same ledger as another gateway process sees it; in memory there is only one. */
  readonly elsewhere: ChunkLedger
  /** How much the ledger keeps, in units of its own. */
  size(): Promise<number>
  /** Waits for that much time by the ledger's clock. */
  lapse(milliseconds: number): Promise<void>
}

const salt = '3f9a'
const minute = 60_000
/** A lease that runs out in a test, and not before the few calls ahead of it. */
const shortMs = 500
const of = (name: string) => ({ salt, name })

/**
 * The contract of ChunkLedger. `test/fuzz/kvcache/chunk-ledger.test.ts` compares both adapters with each other over random sequences of all
 * calls; this suite names the rules, and tests times, order, other processes, and sizes.
 */
export const describeChunkLedger = (adapter: string, make: () => Promise<ChunkLedgerBed>): void => {
  describe(`a chunk ledger in ${adapter}`, () => {
    let bed: ChunkLedgerBed
    beforeEach(async () => {
      bed = await make()
    })
    const hold = (name: string, ...chunks: readonly string[]) => bed.ledger.hold({ ...of(name), chunks })
    const claim = (name: string, ...chunks: readonly string[]) => bed.ledger.claimUnheld({ ...of(name), chunks })
    const release = async (name: string) => {
      const { unheld, lastOfSalt } = await bed.ledger.release(of(name))
      return { unheld: [...unheld].sort(), lastOfSalt }
    }
    const open = (turnId: string, leaseMs = minute) => bed.ledger.open({ salt, turnId, leaseMs })
    const settle = (turnId: string, tidy: boolean) => bed.ledger.settle({ salt, turnId, tidy })
    const saltsToSweep = async () => (await bed.ledger.unsettled(100)).map((entry) => entry.salt)

    test('release returns the chunks that no other artefact holds', async () => {
      await hold('a', 'c1', 'c2', 'c3')
      await hold('b', 'c1', 'c2', 'c4')
      await hold('c', 'c1')
      expect(await release('a')).toEqual({ unheld: ['c3'], lastOfSalt: false })
      expect(await release('b')).toEqual({ unheld: ['c2', 'c4'], lastOfSalt: false })
      expect(await release('c')).toEqual({ unheld: ['c1'], lastOfSalt: true })
    })

    test('neither a released chunk nor its artefact can be held until it is deleted; a refused hold holds nothing', async () => {
      await hold('a', 'c1', 'c2')
      await release('a')
      expect(await hold('a', 'c3')).toBe('being-deleted')
      expect(await hold('b', 'c0', 'c1')).toBe('being-deleted')
      expect(await release('b')).toEqual({ unheld: [], lastOfSalt: true })
      await bed.elsewhere.deleted(of('a'))
      expect(await hold('b', 'c0', 'c1')).toBe('held')
      expect(await release('b')).toEqual({ unheld: ['c0', 'c1'], lastOfSalt: true })
    })

    test('a sweep claims each unheld chunk once, and keeps it from being held until it is deleted', async () => {
      await hold('a', 'c1')
      expect(await claim('sweep', 'c1', 'c2', 'c3', 'c2')).toEqual(['c2', 'c3'])
      expect(await hold('b', 'c1', 'c2')).toBe('being-deleted')
      expect(await hold('b', 'c1')).toBe('held')
      await bed.ledger.deleted(of('sweep'))
      expect(await hold('b', 'c2', 'c3')).toBe('held')
    })

    test('5,000 chunks are held, released and claimed in one call each', async () => {
      const chunks = Array.from({ length: 5_000 }, (_none, index) => index.toString(16).padStart(64, '0'))
      const shared = chunks.slice(0, 3_000)
      expect(await hold('a', ...chunks)).toBe('held')
      expect(await hold('b', ...shared)).toBe('held')
      expect(await release('a')).toEqual({ unheld: chunks.slice(3_000), lastOfSalt: false })
      expect(await claim('sweep', ...chunks)).toEqual(chunks.slice(3_000))
      expect(await release('b')).toEqual({ unheld: shared, lastOfSalt: true })
      expect(await hold('c', ...chunks)).toBe('being-deleted')
      for (const name of ['a', 'b', 'sweep']) await bed.ledger.deleted(of(name))
      expect(await bed.size()).toBe(0)
    })

    test('a turn that is not settled in time unsettles its salt, also when it ends tidily later', async () => {
      await open('t1', 50)
      await bed.lapse(50)
      await settle('t1', true)
      const [entry] = await bed.ledger.unsettled(10)
      expect(entry).toMatchObject({ salt })
      expect(entry?.ageMs).toBeGreaterThanOrEqual(0)
      expect(entry?.ageMs).toBeLessThan(minute)
    })

    test('a turn that is opened again has the later lease', async () => {
      await open('t1', shortMs)
      await open('t1', minute)
      await bed.lapse(shortMs)
      expect(await saltsToSweep()).toEqual([])
    })

    test('unsettled returns the age of the first unsettling', async () => {
      await settle('t1', false)
      await bed.lapse(30)
      await settle('t2', false)
      const [entry] = await bed.ledger.unsettled(10)
      expect(entry?.ageMs).toBeGreaterThanOrEqual(30)
    })

    test('a turn that runs out of time during a sweep unsettles the salt anew', async () => {
      await open('t1', shortMs)
      await settle('t2', false)
      const [before] = await bed.ledger.unsettled(10)
      await bed.lapse(shortMs)
      if (before !== undefined) await bed.ledger.swept(before)
      const [after] = await bed.ledger.unsettled(10)
      expect(after).toMatchObject({ salt })
      expect(after?.mark).not.toBe(before?.mark)
      if (after !== undefined) await bed.ledger.swept(after)
      expect(await saltsToSweep()).toEqual([])
    })

    test('every process sees the turns of the others', async () => {
      await bed.elsewhere.open({ salt, turnId: 't1', leaseMs: minute })
      await settle('t1', false)
      const [here] = await bed.ledger.unsettled(10)
      const [there] = await bed.elsewhere.unsettled(10)
      expect(here).toMatchObject({ salt })
      expect(there?.mark).toBe(here?.mark)
    })

    test('unsettled returns the oldest salts first, and no more than asked for', async () => {
      for (const other of ['s3', 's1', 's2']) {
        await bed.ledger.settle({ salt: other, turnId: 't', tidy: false })
        await bed.lapse(2)
      }
      await bed.ledger.settle({ salt: 's3', turnId: 'again', tidy: false })
      const listed = async (limit: number) => (await bed.ledger.unsettled(limit)).map((entry) => entry.salt)
      expect(await listed(10)).toEqual(['s3', 's1', 's2'])
      expect(await listed(2)).toEqual(['s3', 's1'])
      expect(await listed(0)).toEqual([])
    })

    test('salts, names and chunks may have any characters', async () => {
      const odd = 'a:b /ü\n%3A'
      await bed.ledger.open({ salt: odd, turnId: 't:1', leaseMs: 1 })
      await bed.lapse(2)
      expect(await saltsToSweep()).toEqual([odd])
      await bed.ledger.hold({ salt: odd, name: 'x:y\n', chunks: ['c:"1"\n'] })
      expect((await bed.ledger.release({ salt: odd, name: 'x:y\n' })).unheld).toEqual(['c:"1"\n'])
    })
  })
}
