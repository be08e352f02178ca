import { mkdir, readdir, rmdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import { fileOf, partOf } from '../../../src/kvcache/llamacpp-slots/artefact.ts'
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
  turnOf,
  withPayload,
} from '../../contract/kvcache/kv-test-bed.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'
import { type Meanwhile, useSlots } from './use-slots.ts'

const noSlot = { kind: 'miss', reason: 'no_slot' }
const failed = { kind: 'miss', reason: 'load_failed' }
const resident = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'gpu', tokens })
const loaded = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'store', tokens, loadMs: expect.any(Number) })

/** What llamacpp-slots does beyond every connector: slots are few, and any request can use any of them at any time. */
export const describeSlots = (make: () => Promise<SlotsTestBed>): void => {
  describe('slots', () => {
    const { kit, serveWith, ownSlot } = useSlots(make)
    const { serve, prepare, begin } = kit

    /** Without the one that names the owner of the folder. */
    const files = async () => (await readdir(kit.bed.kvDirectory)).filter((name) => !name.startsWith('.'))
    /** Runs before the kit.first request that contains `part` reaches the engine. */
    const beforeRequest = (pod: SlotPod, part: string, action: () => Promise<unknown>): void => {
      let isFirst = true
      pod.proxy.onRequest(async (line) => {
        if (!isFirst || !line.includes(part)) return
        isFirst = false
        await action()
      })
    }

    describe('traffic without a session', () => {
      const stranger = 'Somebody else says something quite different, and much shorter.'

      const takeSlot = (slot: number, prompt = stranger) => kit.first.run({ prompt, fields: { id_slot: slot } })

      test.each<{ name: string; meanwhile: Meanwhile }>([
        { name: 'between a turn and its finish', meanwhile: ({ slot }) => takeSlot(slot) },
        {
          name: 'with as many tokens',
          meanwhile: ({ slot }) =>
            takeSlot(slot, newPrompt().padEnd(kit.prompt.length, '.').slice(0, kit.prompt.length)),
        },
        {
          name: 'during the save',
          meanwhile: async ({ slot }) => beforeRequest(kit.first, 'action=save', () => takeSlot(slot)),
        },
        {
          name: 'right after the save',
          meanwhile: async ({ slot }) => {
            let hasSaved = false
            kit.first.proxy.onRequest(async (line) => {
              if (hasSaved && line.endsWith('/slots')) await takeSlot(slot)
              if (line.includes('action=save')) hasSaved = true
            })
          },
        },
      ])('request that takes the slot $name is not stored', async ({ meanwhile }) => {
        expect(await serveWith(meanwhile)).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that took the slot is not mistaken for the session', async () => {
        const stored = await begin()
        await takeSlot(0)
        await takeSlot(1, `${stranger} And again.`)
        const { prepared, usage } = await serve(kit.first, stored)
        expect(prepared.presence).toMatchObject(loaded(stored))
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(stored.tokens - 8)
      })

      test('request in the session’s slot moves its turn to another slot', async () => {
        const stored = await begin()
        const own = await ownSlot()
        const occupied = await kit.first.occupy(own)
        const { presence, fields } = await prepare(kit.first, stored)
        expect(presence).toMatchObject(loaded(stored))
        expect(fields['id_slot']).toBe(own === 0 ? 1 : 0)
        await occupied.end()
      })

      test('requests in every slot leave no slot for the turn', async () => {
        const occupied = await Promise.all([kit.first.occupy(0), kit.first.occupy(1)])
        const turn = turnOf(kit.session, kit.first)
        const { presence, fields, claim } = await kit.cache.prepare(turn, { signal: anySignal() })
        expect([presence, fields]).toEqual([noSlot, expect.objectContaining(fieldsWithoutSlot)])
        expect(await finishTurn(kit.cache, turn, { claim })).toEqual({ kind: 'none', reason: 'no_room' })
        await Promise.all(occupied.map((request) => request.end()))
      })

      test('request that begins just before a load delays the load, and neither KV is mixed up', async () => {
        const stored = await begin()
        const occupied: { end(): Promise<void> }[] = []
        const budget = new AbortController()
        beforeRequest(kit.second, 'action=restore', async () => {
          occupied.push(await kit.second.occupy(0), await kit.second.occupy(1))
          budget.abort()
        })
        const { turn, ...prepared } = await prepare(kit.second, stored, budget.signal)
        expect(prepared.presence).toEqual({ kind: 'miss', reason: 'load_timeout', cause: expect.anything() })
        await releaseTurn(kit.cache, turn, prepared)
        expect(await removeSession(kit.cache, kit.session)).toMatchObject({ kind: 'busy' })
        await Promise.all(occupied.map((request) => request.end()))
        await eventually(async () => (await removeSession(kit.cache, kit.session, stored)).kind === 'removed')
        expect(await kit.second.probe(kit.prompt)).toBe(0)
      })

      test('request that begins just before a save delays the save, and its file is removed', async () => {
        kit.cache = kit.bed.connect({ callTimeoutMs: 2_000 })
        const occupied: { end(): Promise<void> }[] = []
        const finished = await serveWith(async ({ slot }) => {
          beforeRequest(kit.first, 'action=save', async () => {
            occupied.push(await kit.first.occupy(slot))
          })
        })
        expect(finished).toMatchObject({ kind: 'none', reason: 'offload_failed' })
        await eventually(() => occupied.length === 1)
        await Promise.all(occupied.map((request) => request.end()))
        await eventually(async () => (await kit.first.slots()).every((slot) => !slot.is_processing))
        await eventually(async () => (await files()).length === 0)
      })
    })

    test('turn without usage in the response is stored', async () => {
      const turn = turnOf(kit.session, kit.first)
      const { fields, claim } = await kit.cache.prepare(turn, { signal: anySignal() })
      await kit.first.run({ prompt: kit.prompt, sessionId: kit.session.id, fields })
      expect(await finishTurn(kit.cache, turn, { claim })).toMatchObject({ kind: 'stored' })
    })

    test('a save that fails, as on a full disk, leaves the KV in the slot to the session', async () => {
      const turn = turnOf(kit.session, kit.first)
      const { fields, claim } = await kit.cache.prepare(turn, { signal: anySignal() })
      const usage = await kit.first.run({ prompt: kit.prompt, sessionId: kit.session.id, fields })
      let folder = ''
      const announce = async ({ artefactId }: { readonly artefactId: string }): Promise<void> => {
        folder = join(kit.bed.kvDirectory, partOf(fileOf(artefactId)))
        await mkdir(folder)
      }
      const finished = await finishTurn(kit.cache, turn, { claim, usage, announce })
      await rmdir(folder)
      expect(finished).toMatchObject({ kind: 'none', reason: 'offload_failed' })
      const next = await serve(kit.first)
      expect(next.prepared.presence).toMatchObject({ kind: 'hit', tier: 'gpu' })
      expect(next.finished.kind).toBe('stored')
    })

    test('a sweep erases idle slots that the ledger does not account for, and no others', async () => {
      await sweep(kit.cache)
      const stored = await begin()
      const passed = newPrompt()
      await kit.first.run({ prompt: passed, fields: { id_slot: (await ownSlot()) === 0 ? 1 : 0 } })
      await sweep(kit.cache)
      expect((await prepare(kit.first, stored)).presence).toEqual(resident(stored))
      expect(await kit.first.probe(passed)).toBe(0)
    })

    describe('more sessions than slots', () => {
      const other = () => ({ session: newSession(), prompt: newPrompt() })

      test('least recently used session gives up its slot, leaves no KV to the next, and is loaded again', async () => {
        const stored = await begin()
        for (const { session: stranger, prompt: text } of [other(), { ...other(), prompt: kit.prompt }]) {
          const turn = await serveTurn(kit.cache, { session: stranger, pod: kit.first, prompt: text })
          expect([turn.prepared.presence.kind, turn.finished.kind]).toEqual(['miss', 'stored'])
          expect(turn.usage.cachedTokens).toBe(0)
        }
        expect(await ownSlot()).toBe(-1)
        const { prepared, usage } = await serve(kit.first, stored)
        expect(prepared.presence).toMatchObject(loaded(stored))
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(stored.tokens - 8)
      })
    })

    describe('engine killed', () => {
      test('during a save: nothing is stored or left behind', async () => {
        const finished = await serveWith(async () => {
          beforeRequest(kit.first, 'action=save', () => kit.first.child().kill())
        })
        expect(finished).toMatchObject({ kind: 'none', reason: 'offload_failed' })
        expect((await files()).filter((file) => file.startsWith('ctx-'))).toEqual([])
        await kit.first.restart()
        expect(await kit.first.probe(kit.prompt)).toBe(0)
      })

      test('during a load: the turn continues, and the next one loads', async () => {
        const stored = await begin()
        beforeRequest(kit.second, 'action=restore', () => kit.second.child().kill())
        expect((await prepare(kit.second, stored)).presence).toMatchObject(failed)
        await kit.second.restart()
        await eventually(async () => (await prepare(kit.second, stored)).presence.kind === 'hit')
      })
    })

    describe('gateway killed', () => {
      /** A turn of a gateway that died, whose lease runs out. */
      const dead = async (pod: SlotPod, slot: number, leaseMs: number): Promise<void> => {
        const claim = { pod: pod.address, session: newSession().key, turnId: 'dead', leaseMs, mayWait: false }
        await kit.bed.ledger.claim({ ...claim, artefactId: undefined, slots: [{ id: slot, idle: true }] })
      }

      test('during a load: the next turn loads', async () => {
        const stored = await begin()
        await dead(kit.second, 0, 60_000)
        await dead(kit.second, 1, 1)
        await eventually(async () => (await prepare(kit.second, stored)).presence.kind === 'hit')
      })

      test('after it took over a slot: the former session can still be removed', async () => {
        const stored = await begin()
        await dead(kit.first, await ownSlot(), 2_000)
        expect(await removeSession(kit.cache, kit.session, stored)).toMatchObject({ kind: 'busy' })
        await eventually(async () => (await removeSession(kit.cache, kit.session, stored)).kind === 'removed')
        expect(await kit.first.probe(kit.prompt)).toBe(0)
      })
    })

    describe('files', () => {
      test('file of another engine or model is not loaded', async () => {
        const stored = await begin()
        const payload = JSON.stringify({ ...JSON.parse(payloadOf(stored)), fingerprint: 'of-another-engine' })
        const { prepared, usage } = await serve(kit.second, withPayload(stored, payload))
        expect(prepared.presence).toEqual({ kind: 'miss', reason: 'kv_incompatible' })
        expect([usage.cachedTokens, kit.second.loads()]).toEqual([0, 0])
        expect(await kit.bed.artefacts()).toContain(stored.artefactId)
      })

      test('file with another number of tokens than the session’s is not used', async () => {
        const stored = await begin()
        const { prepared, usage } = await serve(kit.second, { ...stored, tokens: stored.tokens + 1 })
        expect(prepared.presence).toMatchObject(failed)
        expect(usage.cachedTokens).toBe(0)
      })

      test('unfinished files are removed when they are old, and young orphans are kept', async () => {
        const stored = await begin()
        kit.cache = kit.bed.connect({ orphanGraceMs: 60_000 })
        const hourAgo = new Date(Date.now() - 3_600_000)
        const young = ['ctx-1.kv.part']
        const old = ['ctx-2.kv.part']
        const strange = ['notes.txt', 'other.kv']
        for (const name of [...young, ...old, ...strange]) await writeFile(join(kit.bed.kvDirectory, name), 'x')
        for (const name of [...old, ...strange]) await utimes(join(kit.bed.kvDirectory, name), hourAgo, hourAgo)
        await sweep(kit.cache, [])
        expect((await files()).sort()).toEqual([...young, ...strange, `ctx-${stored.artefactId}.kv`].sort())
      })

      test('one file name is written once', async () => {
        const names = new Set<string>()
        let stored: KvArtefact | undefined
        for (let turn = 0; turn < 4; turn += 1) {
          const served = await serve(kit.first, stored, kit.prompt + ' More.'.repeat(turn))
          names.add(storedBy(served.finished)?.artefactId ?? 'none')
          stored = served.stored
        }
        expect(names.size).toBe(4)
        expect(await files()).toHaveLength(4)
      })
    })
  })
}
