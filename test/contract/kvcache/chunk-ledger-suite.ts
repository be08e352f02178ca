import { beforeEach, describe, expect, test } from '@jest/globals'
import type { ChunkLedgerBed } from './chunk-ledger-bed.ts'

const salt = '3f9a'
const minute = 60_000
/** A lease that a test sees run out, and that holds through the few calls before. */
const shortMs = 500
const of = (name: string) => ({ salt, name })

/** What every ledger of chunks promises, whoever holds them. */
export const describeChunkLedger = (adapter: string, make: () => Promise<ChunkLedgerBed>): void => {
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
  const saltsToSweep = async () => (await bed.ledger.unsettled(100)).map((entry) => entry.salt)
  const markOf = async (wanted: string) => {
    const found = (await bed.ledger.unsettled(100)).find((entry) => entry.salt === wanted)
    return found ?? { salt: wanted, mark: 'none', ageMs: 0 }
  }

  describe(`the chunks of a ledger in ${adapter}`, () => {
    test('are answered when their only holder lets go', async () => {
      expect(await hold('a', 'c1', 'c2')).toBe('held')
      expect(await release('a')).toEqual({ unheld: ['c1', 'c2'], lastOfSalt: true })
    })

    test('stay while another artefact needs them', async () => {
      await hold('a', 'c1', 'c2', 'c3')
      await hold('b', 'c1', 'c2', 'c4')
      await hold('c', 'c1')
      expect(await release('a')).toEqual({ unheld: ['c3'], lastOfSalt: false })
      expect(await release('b')).toEqual({ unheld: ['c2', 'c4'], lastOfSalt: false })
      expect(await release('c')).toEqual({ unheld: ['c1'], lastOfSalt: true })
    })

    test('count once for a name that holds them again, or names them twice', async () => {
      await hold('a', 'c1', 'c1')
      await hold('a', 'c1')
      await hold('b', 'c1')
      expect(await release('a')).toEqual({ unheld: [], lastOfSalt: false })
      expect(await release('b')).toEqual({ unheld: ['c1'], lastOfSalt: true })
    })

    test('add up over several calls of one name', async () => {
      await hold('a', 'c1')
      await hold('a', 'c2')
      await hold('a')
      expect(await release('a')).toEqual({ unheld: ['c1', 'c2'], lastOfSalt: true })
    })

    test('cannot be held between a release and its end, and nothing of the call is held', async () => {
      await hold('a', 'c1', 'c2')
      await release('a')
      expect(await hold('b', 'c0', 'c1')).toBe('being-deleted')
      expect(await release('b')).toEqual({ unheld: [], lastOfSalt: true })
      await bed.ledger.deleted(of('a'))
      expect(await hold('b', 'c0', 'c1')).toBe('held')
      expect(await release('b')).toEqual({ unheld: ['c0', 'c1'], lastOfSalt: true })
    })

    test('are answered again and again, to another process too, until they are deleted', async () => {
      await hold('a', 'c1', 'c2')
      const [first, second] = await Promise.all([release('a'), bed.elsewhere.release(of('a'))])
      expect(first).toEqual({ unheld: ['c1', 'c2'], lastOfSalt: true })
      expect([...second.unheld].sort()).toEqual(['c1', 'c2'])
      expect(await release('a')).toEqual({ unheld: ['c1', 'c2'], lastOfSalt: true })
      await bed.elsewhere.deleted(of('a'))
      await bed.ledger.deleted(of('a'))
      expect(await release('a')).toEqual({ unheld: [], lastOfSalt: true })
    })

    test('of an artefact whose deletion is open cannot become more', async () => {
      await hold('a', 'c1')
      await release('a')
      expect(await hold('a', 'c2')).toBe('being-deleted')
      await bed.ledger.deleted(of('a'))
      expect(await hold('a', 'c2')).toBe('held')
    })

    test('of an unknown artefact are none', async () => {
      expect(await release('nobody')).toEqual({ unheld: [], lastOfSalt: true })
      await hold('a', 'c1')
      expect(await release('nobody')).toEqual({ unheld: [], lastOfSalt: false })
      expect(await bed.ledger.deleted(of('nobody'))).toBeUndefined()
    })

    test('of one salt are not those of another', async () => {
      await hold('a', 'c1')
      await bed.ledger.hold({ salt: '3f9b', name: 'a', chunks: ['c1'] })
      expect(await release('a')).toEqual({ unheld: ['c1'], lastOfSalt: true })
      expect(await bed.ledger.hold({ salt: '3f9b', name: 'b', chunks: ['c1'] })).toBe('held')
      expect(await hold('b', 'c1')).toBe('being-deleted')
    })

    test('that nobody holds are claimed for a sweep, each once', async () => {
      await hold('a', 'c1')
      expect(await claim('sweep', 'c1', 'c2', 'c3', 'c2')).toEqual(['c2', 'c3'])
      expect(await hold('b', 'c1', 'c2')).toBe('being-deleted')
      expect(await hold('b', 'c1')).toBe('held')
      await bed.ledger.deleted(of('sweep'))
      expect(await hold('b', 'c2', 'c3')).toBe('held')
    })

    test('claimed call by call under one name are let go together', async () => {
      await claim('sweep', 'c1')
      await claim('sweep', 'c2')
      expect(await release('sweep')).toEqual({ unheld: ['c1', 'c2'], lastOfSalt: true })
      await bed.ledger.deleted(of('sweep'))
      expect(await hold('b', 'c1', 'c2')).toBe('held')
    })

    test('that two are deleting wait for both', async () => {
      await hold('a', 'c1')
      await release('a')
      expect(await claim('sweep', 'c1')).toEqual(['c1'])
      await bed.ledger.deleted(of('a'))
      expect(await hold('b', 'c1')).toBe('being-deleted')
      await bed.ledger.deleted(of('sweep'))
      expect(await hold('b', 'c1')).toBe('held')
    })

    test('may be thousands', async () => {
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
  })

  describe(`the turns of a ledger in ${adapter}`, () => {
    const open = (turnId: string, leaseMs = minute) => bed.ledger.open({ salt, turnId, leaseMs })
    const settle = (turnId: string, tidy: boolean) => bed.ledger.settle({ salt, turnId, tidy })

    test('leave nothing when they end tidily in time', async () => {
      await open('t1')
      expect(await saltsToSweep()).toEqual([])
      await settle('t1', true)
      expect(await saltsToSweep()).toEqual([])
      expect(await bed.size()).toBe(0)
    })

    test.each([
      ['was opened', true],
      ['nobody opened', false],
    ])('unsettle their salt when one that %s ends untidily', async (_name, isOpened) => {
      if (isOpened) await open('t1')
      await settle('t1', false)
      expect(await saltsToSweep()).toEqual([salt])
    })

    test('unsettle their salt when they are not settled in time', async () => {
      await open('t1', 50)
      await bed.lapse(50)
      const [entry] = await bed.ledger.unsettled(10)
      expect(entry).toMatchObject({ salt })
      expect(entry?.ageMs).toBeGreaterThanOrEqual(0)
      expect(entry?.ageMs).toBeLessThan(minute)
    })

    test('take nothing back with a tidy end that comes too late', async () => {
      await open('t1', 10)
      await bed.lapse(10)
      await settle('t1', true)
      expect(await saltsToSweep()).toEqual([salt])
    })

    test('are given more time when they are opened again', async () => {
      await open('t1', shortMs)
      await open('t1', minute)
      await bed.lapse(shortMs)
      expect(await saltsToSweep()).toEqual([])
    })

    test('tell how long ago the salt became unsettled', async () => {
      await settle('t1', false)
      await bed.lapse(30)
      await settle('t2', false)
      const [entry] = await bed.ledger.unsettled(10)
      expect(entry?.ageMs).toBeGreaterThanOrEqual(30)
    })

    test('leave nothing once the salt was swept', async () => {
      await open('t1')
      await settle('t1', false)
      await bed.ledger.swept(await markOf(salt))
      expect(await saltsToSweep()).toEqual([])
      expect(await bed.size()).toBe(0)
    })

    test.each([
      ['ended untidily', minute, () => settle('t2', false)],
      ['ended untidily once more', minute, () => settle('t1', false)],
      ['ran out of time', shortMs, () => bed.lapse(shortMs)],
    ])('unsettle a salt anew when one %s during the sweep', async (_name, leaseMs, meanwhile) => {
      await open('t2', leaseMs)
      await settle('t1', false)
      const before = await markOf(salt)
      await meanwhile()
      await bed.ledger.swept(before)
      expect(await saltsToSweep()).toEqual([salt])
      const after = await markOf(salt)
      expect(after.mark).not.toBe(before.mark)
      await settle('t2', true)
      await bed.ledger.swept(after)
      expect(await saltsToSweep()).toEqual([])
    })

    test('do not mistake an old sweep for one of now', async () => {
      await settle('t1', false)
      const old = await markOf(salt)
      await bed.ledger.swept(old)
      await settle('t2', false)
      await bed.ledger.swept(old)
      expect(await saltsToSweep()).toEqual([salt])
    })

    test('stay open through a sweep of their salt', async () => {
      await open('t1', shortMs)
      await settle('t2', false)
      await bed.ledger.swept(await markOf(salt))
      await bed.lapse(shortMs)
      expect(await saltsToSweep()).toEqual([salt])
    })

    test('are seen by every process', async () => {
      await bed.elsewhere.open({ salt, turnId: 't1', leaseMs: minute })
      await settle('t1', false)
      const [entry] = await bed.elsewhere.unsettled(10)
      expect(entry).toMatchObject(await markOf(salt).then(({ mark }) => ({ salt, mark })))
    })

    test('list salts oldest first, and no more than asked for', async () => {
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

    test('may be of a salt and a name with any signs in them', async () => {
      const odd = 'a:b /ü\n%3A'
      await bed.ledger.open({ salt: odd, turnId: 't:1', leaseMs: 1 })
      await bed.lapse(2)
      expect(await saltsToSweep()).toEqual([odd])
      await bed.ledger.hold({ salt: odd, name: 'x:y\n', chunks: ['c:"1"\n'] })
      expect((await bed.ledger.release({ salt: odd, name: 'x:y\n' })).unheld).toEqual(['c:"1"\n'])
    })
  })

  test(`a ledger in ${adapter} keeps nothing when everything was released, deleted, settled and swept`, async () => {
    await bed.ledger.open({ salt, turnId: 't1', leaseMs: minute })
    await bed.ledger.open({ salt, turnId: 't2', leaseMs: 1 })
    await hold('a', 'c1', 'c2')
    await hold('b', 'c2', 'c3')
    await claim('sweep', 'c3', 'c4')
    await bed.ledger.settle({ salt, turnId: 't1', tidy: false })
    await bed.lapse(2)
    expect(await bed.size()).toBeGreaterThan(0)
    for (const name of ['a', 'b']) await release(name)
    for (const name of ['a', 'b', 'sweep']) await bed.ledger.deleted(of(name))
    await bed.ledger.swept(await markOf(salt))
    expect(await bed.size()).toBe(0)
  })
}
