import { readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import { fieldsWithoutSlot } from '../../../src/kvcache/llamacpp-slots/claim.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  payloadOf,
  releaseTurn,
  removeSession,
  serveTurn,
  storedBy,
  sweep,
  type TestSession,
  turnOf,
  withPayload,
} from '../../contract/kvcache/kv-test-bed.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'

const timeoutMs = 60_000

const noSlot = { kind: 'miss', reason: 'no_slot' }
const failed = { kind: 'miss', reason: 'load_failed' }
const resident = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'gpu', tokens })
const loaded = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'store', tokens, loadMs: expect.any(Number) })

/** What llamacpp-slots does beyond every connector: slots are few, and any request can use any of them at any time. */
export const describeSlots = (make: () => Promise<SlotsTestBed>): void => {
  describe('slots', () => {
    let bed: SlotsTestBed
    let cache: KvCache
    let first: SlotPod
    let second: SlotPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      cache = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = newPrompt()
    }, timeoutMs)
    afterEach(async () => {
      for (const pod of bed.pods) pod.proxy.onRequest(() => {})
      await bed.close()
    }, timeoutMs)

    const serve = (pod: SlotPod, stored?: KvArtefact, text = prompt) =>
      serveTurn(cache, { session, pod, prompt: text, stored })
    const prepare = (pod: SlotPod, stored?: KvArtefact, signal = anySignal()) =>
      cache.prepare(turnOf(session, pod, { stored }), { signal })
    const begin = async (): Promise<KvArtefact> => {
      const { stored, finished } = await serve(first)
      if (stored === undefined) throw new Error(`the first turn stored nothing: ${inspect(finished)}`)
      return stored
    }
    /** Takes a turn as far as its response; `meanwhile` happens before its finish. */
    const serveWith = async (meanwhile: (slot: number) => Promise<unknown>) => {
      const turn = turnOf(session, first)
      const { fields, claim } = await cache.prepare(turn, { signal: anySignal() })
      const usage = await first.run({ prompt, sessionId: session.id, fields })
      await meanwhile(Number(fields['id_slot']))
      return finishTurn(cache, turn, { claim, usage })
    }
    /** Without the one that names the owner of the folder. */
    const files = async () => (await readdir(bed.kvDirectory)).filter((name) => !name.startsWith('.'))
    /** Runs before the first request that contains `part` reaches the engine. */
    const beforeRequest = (pod: SlotPod, part: string, action: () => Promise<unknown>): void => {
      let isFirst = true
      pod.proxy.onRequest(async (line) => {
        if (!isFirst || !line.includes(part)) return
        isFirst = false
        await action()
      })
    }
    /** The slot of the first pod in which the session's KV lies. */
    const ownSlot = async (): Promise<number> => {
      const entries = await bed.ledger.list(first.address)
      return entries.find(({ owner }) => owner === session.key)?.slot ?? -1
    }

    describe('traffic without a session', () => {
      const stranger = 'Somebody else says something quite different, and much shorter.'

      test('request that takes the slot between a turn and its finish is not stored', async () => {
        const finished = await serveWith((slot) => first.run({ prompt: stranger, fields: { id_slot: slot } }))
        expect(finished).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that takes the slot during the save is not stored', async () => {
        const finished = await serveWith(async (slot) => {
          beforeRequest(first, 'action=save', () => first.run({ prompt: stranger, fields: { id_slot: slot } }))
        })
        expect(finished).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that takes the slot right after the save invalidates the file', async () => {
        const finished = await serveWith(async (slot) => {
          let hasSaved = false
          first.proxy.onRequest(async (line) => {
            if (hasSaved && line.endsWith('/slots')) await first.run({ prompt: stranger, fields: { id_slot: slot } })
            if (line.includes('action=save')) hasSaved = true
          })
        })
        expect(finished).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that took the slot is not mistaken for the session', async () => {
        const stored = await begin()
        await first.run({ prompt: stranger, fields: { id_slot: 0 } })
        await first.run({ prompt: `${stranger} And again.`, fields: { id_slot: 1 } })
        const { prepared, usage } = await serve(first, stored)
        expect(prepared.presence).toMatchObject(loaded(stored))
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(stored.tokens - 8)
      })

      test('request in the session’s slot moves its turn to another slot', async () => {
        const stored = await begin()
        const own = await ownSlot()
        const occupied = await first.occupy(own)
        const { presence, fields } = await prepare(first, stored)
        expect(presence).toMatchObject(loaded(stored))
        expect(fields['id_slot']).toBe(own === 0 ? 1 : 0)
        await occupied.end()
      })

      test('requests in every slot leave no slot for the turn', async () => {
        const occupied = await Promise.all([first.occupy(0), first.occupy(1)])
        const turn = turnOf(session, first)
        const { presence, fields, claim } = await cache.prepare(turn, { signal: anySignal() })
        expect([presence, fields]).toEqual([noSlot, expect.objectContaining(fieldsWithoutSlot)])
        expect(await finishTurn(cache, turn, { claim })).toEqual({ kind: 'none', reason: 'no_room' })
        await Promise.all(occupied.map((request) => request.end()))
      })

      test('request that begins just before a load delays the load, and neither KV is mixed up', async () => {
        const stored = await begin()
        const occupied: { end(): Promise<void> }[] = []
        beforeRequest(second, 'action=restore', async () => {
          occupied.push(await second.occupy(0), await second.occupy(1))
        })
        const { presence } = await prepare(second, stored, AbortSignal.timeout(400))
        expect(presence).toEqual({ kind: 'miss', reason: 'load_timeout', cause: expect.anything() })
        expect(await removeSession(cache, session)).toMatchObject({ kind: 'busy' })
        await Promise.all(occupied.map((request) => request.end()))
        await eventually(async () => (await removeSession(cache, session, stored)).kind === 'removed')
        expect(await second.probe(prompt)).toBe(0)
      })

      test('request that begins just before a save delays the save, and its file is removed', async () => {
        cache = bed.connect({ callTimeoutMs: 400 })
        const occupied: { end(): Promise<void> }[] = []
        const finished = await serveWith(async (slot) => {
          beforeRequest(first, 'action=save', async () => {
            occupied.push(await first.occupy(slot))
          })
        })
        expect(finished).toMatchObject({ kind: 'none', reason: 'offload_failed' })
        await Promise.all(occupied.map((request) => request.end()))
        await eventually(async () => (await first.slots()).every((slot) => !slot.is_processing))
        await eventually(async () => (await files()).length === 0)
      })

      test('request of the same length is not mistaken for the session', async () => {
        const text = newPrompt().padEnd(prompt.length, '.').slice(0, prompt.length)
        const finished = await serveWith((slot) => first.run({ prompt: text, fields: { id_slot: slot } }))
        expect(finished).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })
    })

    test('turn without usage in the response is stored', async () => {
      const turn = turnOf(session, first)
      const { fields, claim } = await cache.prepare(turn, { signal: anySignal() })
      await first.run({ prompt, sessionId: session.id, fields })
      expect(await finishTurn(cache, turn, { claim })).toMatchObject({ kind: 'stored' })
    })

    test('a sweep erases idle slots that the ledger does not account for, and no others', async () => {
      await sweep(cache)
      expect(await sweep(cache)).toBe(0)
      const stored = await begin()
      const passed = newPrompt()
      await first.run({ prompt: passed, fields: { id_slot: (await ownSlot()) === 0 ? 1 : 0 } })
      expect(await sweep(cache)).toBe(1)
      expect((await prepare(first, stored)).presence).toEqual(resident(stored))
      expect(await first.probe(passed)).toBe(0)
    })

    describe('more sessions than slots', () => {
      const other = () => ({ session: newSession(), prompt: newPrompt() })

      test('least recently used session gives up its slot, leaves no KV to the next, and is loaded again', async () => {
        const stored = await begin()
        for (const { session: stranger, prompt: text } of [other(), { ...other(), prompt }]) {
          const turn = await serveTurn(cache, { session: stranger, pod: first, prompt: text })
          expect([turn.prepared.presence.kind, turn.usage.cachedTokens, turn.finished.kind]).toEqual([
            'miss',
            0,
            'stored',
          ])
        }
        expect(await ownSlot()).toBe(-1)
        const { prepared, usage } = await serve(first, stored)
        expect(prepared.presence).toMatchObject(loaded(stored))
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(stored.tokens - 8)
      })

      test('turns that hold all slots leave none until one is released', async () => {
        const turns = [other(), other()].map(({ session: stranger }) => turnOf(stranger, first))
        const held = []
        for (const turn of turns) held.push({ turn, prepared: await cache.prepare(turn, { signal: anySignal() }) })
        expect((await prepare(first)).presence).toEqual(noSlot)
        for (const { turn, prepared } of held) await releaseTurn(cache, turn, prepared)
        expect((await serve(first)).finished.kind).toBe('stored')
      })
    })

    describe('engine killed', () => {
      test('during a save: nothing is stored or left behind', async () => {
        const finished = await serveWith(async () => {
          beforeRequest(first, 'action=save', () => first.child().kill())
        })
        expect(finished).toMatchObject({ kind: 'none', reason: 'offload_failed' })
        expect((await files()).filter((file) => file.startsWith('ctx-'))).toEqual([])
        await first.restart()
        expect(await first.probe(prompt)).toBe(0)
      })

      test('during a load: the turn continues, and the next one loads', async () => {
        const stored = await begin()
        cache = bed.connect({ callTimeoutMs: 1_000 })
        beforeRequest(second, 'action=restore', () => second.child().kill())
        expect((await prepare(second, stored)).presence).toMatchObject(failed)
        await second.restart()
        await eventually(async () => (await prepare(second, stored)).presence.kind === 'hit')
      })
    })

    describe('gateway killed', () => {
      /** A turn of a gateway that died, whose lease runs out. */
      const dead = async (pod: SlotPod, slot: number, leaseMs: number): Promise<void> => {
        const claim = { pod: pod.address, session: newSession().key, turnId: 'dead', leaseMs, mayWait: false }
        await bed.ledger.claim({ ...claim, artefactId: undefined, idle: [slot] })
      }

      test('during a load: the next turn loads', async () => {
        const stored = await begin()
        await dead(second, 0, 60_000)
        await dead(second, 1, 1)
        await eventually(async () => (await prepare(second, stored)).presence.kind === 'hit')
      })

      test('after it took over a slot: the former session can still be removed', async () => {
        const stored = await begin()
        await dead(first, await ownSlot(), 300)
        expect(await removeSession(cache, session, stored)).toMatchObject({ kind: 'busy' })
        await eventually(async () => (await removeSession(cache, session, stored)).kind === 'removed')
        expect(await first.probe(prompt)).toBe(0)
      })

      test('after it took over a slot: the next sweep empties the slot', async () => {
        await begin()
        await dead(first, await ownSlot(), 100)
        await eventually(async () => (await bed.ledger.list(first.address)).every(({ inUse }) => !inUse))
        await sweep(cache)
        expect(await first.probe(prompt)).toBe(0)
      })
    })

    describe('files', () => {
      test('file of another engine or model is not loaded', async () => {
        const stored = await begin()
        const payload = JSON.stringify({ ...JSON.parse(payloadOf(stored)), fingerprint: 'of-another-engine' })
        const { prepared, usage } = await serve(second, withPayload(stored, payload))
        expect(prepared.presence).toEqual({ kind: 'miss', reason: 'kv_incompatible' })
        expect([usage.cachedTokens, second.loads(), await bed.artefacts()]).toEqual([
          0,
          0,
          expect.arrayContaining([stored.artefactId]),
        ])
      })

      test('file with another number of tokens than the session’s is not used', async () => {
        const stored = await begin()
        const { prepared, usage } = await serve(second, { ...stored, tokens: stored.tokens + 1 })
        expect(prepared.presence).toMatchObject(failed)
        expect(usage.cachedTokens).toBe(0)
      })

      test('unfinished files are removed when they are old, and young orphans are kept', async () => {
        const stored = await begin()
        cache = bed.connect({ orphanGraceMs: 60_000 })
        const hourAgo = new Date(Date.now() - 3_600_000)
        const young = ['ctx-1.kv.part']
        const old = ['ctx-2.kv.part']
        const strange = ['notes.txt', 'other.kv']
        for (const name of [...young, ...old, ...strange]) await writeFile(join(bed.kvDirectory, name), 'x')
        for (const name of [...old, ...strange]) await utimes(join(bed.kvDirectory, name), hourAgo, hourAgo)
        await sweep(cache, [])
        expect((await files()).sort()).toEqual([...young, ...strange, `ctx-${stored.artefactId}.kv`].sort())
      })

      test('one file name is written once', async () => {
        const names = new Set<string>()
        let stored: KvArtefact | undefined
        for (let turn = 0; turn < 4; turn += 1) {
          const served = await serve(first, stored, prompt + ' More.'.repeat(turn))
          names.add(storedBy(served.finished)?.artefactId ?? 'none')
          stored = served.stored
        }
        expect(names.size).toBe(4)
        expect(await files()).toHaveLength(4)
      })
    })
  })
}
