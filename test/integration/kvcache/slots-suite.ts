import { readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { fieldsWithoutSlot } from '../../../src/kvcache/llamacpp-slots/engine-fields.ts'
import type { StoredKv } from '../../../src/sessions/session-record.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  storedKv,
  type TestSession,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import type { KvConnector } from '../../contract/kvcache/old-kv-port.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'

const timeoutMs = 60_000

/** What llamacpp-slots does beyond every connector: slots are few, and any request can use any of them at any time. */
export const describeSlots = (make: () => Promise<SlotsTestBed>): void => {
  describe('slots', () => {
    let bed: SlotsTestBed
    let connector: KvConnector
    let first: SlotPod
    let second: SlotPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      connector = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = newPrompt()
    }, timeoutMs)
    afterEach(async () => {
      for (const pod of bed.pods) pod.proxy.onRequest(() => {})
      await bed.close()
    }, timeoutMs)

    const serve = (pod: SlotPod, kv?: StoredKv, text = prompt) =>
      serveTurn(connector, { session, pod, prompt: text, kv })
    const begin = async (): Promise<StoredKv> => {
      const { kv, offloaded } = await serve(first)
      if (kv === undefined) throw new Error(`the first turn stored nothing: ${inspect(offloaded)}`)
      return kv
    }
    /** Takes a turn as far as its answer; `meanwhile` happens before its offload. */
    const serveWith = async (meanwhile: (slot: number) => Promise<unknown>) => {
      const turn = turnOf(session, first)
      const { fields, claim } = await connector.attach(turn, undefined, { signal: anySignal() })
      const usage = await first.run({ prompt, sessionId: session.id, fields })
      const totalTokens = usage.promptTokens + usage.outputTokens
      await meanwhile(Number(fields['id_slot']))
      return connector.offload({ turn, claim, totalTokens, announce: async () => {}, signal: anySignal() })
    }
    const files = () => readdir(bed.kvDirectory)
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
    const sweep = () => connector.reconcile(async (ids) => new Set(ids), anySignal())
    const removeSession = (kv: StoredKv | undefined) =>
      connector.remove({ kind: 'session', session: session.key, payload: kv?.payload }, anySignal())

    describe('traffic without a session', () => {
      const stranger = 'Somebody else says something quite different, and much shorter.'

      test('request that takes the slot between a turn and its offload is not stored', async () => {
        const offloaded = await serveWith((slot) => first.run({ prompt: stranger, fields: { id_slot: slot } }))
        expect(offloaded).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that takes the slot during the save is not stored', async () => {
        const offloaded = await serveWith(async (slot) => {
          beforeRequest(first, 'action=save', () => first.run({ prompt: stranger, fields: { id_slot: slot } }))
        })
        expect(offloaded).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that takes the slot right after the save invalidates the file', async () => {
        const offloaded = await serveWith(async (slot) => {
          let hasSaved = false
          first.proxy.onRequest(async (line) => {
            if (hasSaved && line.endsWith('/slots')) await first.run({ prompt: stranger, fields: { id_slot: slot } })
            if (line.includes('action=save')) hasSaved = true
          })
        })
        expect(offloaded).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })

      test('request that took the slot is not mistaken for the session', async () => {
        const kv = await begin()
        await first.run({ prompt: stranger, fields: { id_slot: 0 } })
        await first.run({ prompt: `${stranger} And again.`, fields: { id_slot: 1 } })
        const { attached, usage } = await serve(first, kv)
        expect(attached.presence).toMatchObject({ kind: 'loaded', tokens: kv.tokens })
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(kv.tokens - 8)
      })

      test('request in the session’s slot moves its turn to another slot', async () => {
        const kv = await begin()
        const own = await ownSlot()
        const occupied = await first.occupy(own)
        const { presence, fields } = await connector.attach(turnOf(session, first), kv, { signal: anySignal() })
        expect(presence).toMatchObject({ kind: 'loaded' })
        expect(fields['id_slot']).toBe(own === 0 ? 1 : 0)
        await occupied.end()
      })

      test('requests in every slot leave no slot for the turn', async () => {
        const occupied = await Promise.all([first.occupy(0), first.occupy(1)])
        const { presence, fields, claim } = await connector.attach(turnOf(session, first), undefined, {
          signal: anySignal(),
        })
        expect([presence, fields]).toEqual([{ kind: 'no-room' }, expect.objectContaining(fieldsWithoutSlot)])
        const turn = { turn: turnOf(session, first), claim, totalTokens: 400 }
        expect(await connector.offload({ ...turn, announce: async () => {}, signal: anySignal() })).toEqual({
          kind: 'none',
          reason: 'no_room',
        })
        await Promise.all(occupied.map((request) => request.end()))
      })

      test('request that begins just before a load delays the load, and neither KV is mixed up', async () => {
        const kv = await begin()
        connector = bed.connect({ callTimeoutMs: 400 })
        const occupied: { end(): Promise<void> }[] = []
        beforeRequest(second, 'action=restore', async () => {
          occupied.push(await second.occupy(0), await second.occupy(1))
        })
        expect((await connector.attach(turnOf(session, second), kv, { signal: anySignal() })).presence).toMatchObject({
          kind: 'failed',
        })
        expect(await removeSession(undefined)).toMatchObject({ kind: 'busy' })
        await Promise.all(occupied.map((request) => request.end()))
        connector = bed.connect()
        await eventually(async () => (await removeSession(kv)).kind === 'removed')
        expect(await second.probe(prompt)).toBe(0)
      })

      test('request that begins just before a save delays the save, and its file is removed', async () => {
        connector = bed.connect({ callTimeoutMs: 400 })
        const occupied: { end(): Promise<void> }[] = []
        const offloaded = await serveWith(async (slot) => {
          beforeRequest(first, 'action=save', async () => {
            occupied.push(await first.occupy(slot))
          })
        })
        expect(offloaded).toMatchObject({ kind: 'none', reason: 'offload_failed' })
        await Promise.all(occupied.map((request) => request.end()))
        await eventually(async () => (await first.slots()).every((slot) => !slot.is_processing))
        await eventually(async () => (await files()).length === 0)
      })

      test('request of the same length is not mistaken for the session', async () => {
        const text = newPrompt().padEnd(prompt.length, '.').slice(0, prompt.length)
        const offloaded = await serveWith((slot) => first.run({ prompt: text, fields: { id_slot: slot } }))
        expect(offloaded).toEqual({ kind: 'none', reason: 'not_verified' })
        expect(await files()).toEqual([])
      })
    })

    test('turn without usage in the response is stored', async () => {
      const turn = turnOf(session, first)
      const { fields, claim } = await connector.attach(turn, undefined, { signal: anySignal() })
      await first.run({ prompt, sessionId: session.id, fields })
      const request = { turn, claim, totalTokens: undefined, announce: async () => {}, signal: anySignal() }
      expect(await connector.offload(request)).toMatchObject({ kind: 'stored' })
    })

    test('a sweep erases idle slots that the ledger does not account for, and no others', async () => {
      await sweep()
      expect(await sweep()).toBe(0)
      const kv = await begin()
      const passed = newPrompt()
      await first.run({ prompt: passed, fields: { id_slot: (await ownSlot()) === 0 ? 1 : 0 } })
      expect(await sweep()).toBe(1)
      expect((await connector.attach(turnOf(session, first), kv, { signal: anySignal() })).presence).toEqual({
        kind: 'resident',
        tokens: kv.tokens,
      })
      expect(await first.probe(passed)).toBe(0)
    })

    describe('more sessions than slots', () => {
      const other = () => ({ session: newSession(), prompt: newPrompt() })

      test('least recently used session gives up its slot, leaves no KV to the next, and is loaded again', async () => {
        const kv = await begin()
        for (const { session: stranger, prompt: text } of [other(), { ...other(), prompt }]) {
          const turn = await serveTurn(connector, { session: stranger, pod: first, prompt: text })
          expect([turn.attached.presence.kind, turn.usage.cachedTokens, turn.offloaded.kind]).toEqual([
            'empty',
            0,
            'stored',
          ])
        }
        expect(await ownSlot()).toBe(-1)
        const { attached, usage } = await serve(first, kv)
        expect(attached.presence).toMatchObject({ kind: 'loaded', tokens: kv.tokens })
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(kv.tokens - 8)
      })

      test('turns that hold all slots leave none until one is released', async () => {
        const turns = [other(), other()].map(({ session: stranger }) => turnOf(stranger, first))
        const claims: string[] = []
        for (const turn of turns) claims.push((await connector.attach(turn, undefined, { signal: anySignal() })).claim)
        expect((await connector.attach(turnOf(session, first), undefined, { signal: anySignal() })).presence).toEqual({
          kind: 'no-room',
        })
        for (const [index, turn] of turns.entries()) await connector.detach(turn, claims[index] ?? '', anySignal())
        expect((await serve(first)).offloaded.kind).toBe('stored')
      })
    })

    describe('engine killed', () => {
      test('during a save: nothing is stored or left behind', async () => {
        const offloaded = await serveWith(async () => {
          beforeRequest(first, 'action=save', () => first.child().kill())
        })
        expect(offloaded).toMatchObject({ kind: 'none', reason: 'offload_failed' })
        expect((await files()).filter((file) => file.startsWith('ctx-'))).toEqual([])
        await first.restart()
        expect(await first.probe(prompt)).toBe(0)
      })

      test('during a load: the turn continues, and the next one loads', async () => {
        const kv = await begin()
        connector = bed.connect({ callTimeoutMs: 1_000 })
        beforeRequest(second, 'action=restore', () => second.child().kill())
        expect((await connector.attach(turnOf(session, second), kv, { signal: anySignal() })).presence.kind).toBe(
          'failed',
        )
        await second.restart()
        const presence = async () =>
          (await connector.attach(turnOf(session, second), kv, { signal: anySignal() })).presence.kind
        await eventually(async () => (await presence()) === 'loaded')
      })
    })

    describe('gateway killed', () => {
      /** A turn of a gateway that died, whose lease runs out. */
      const dead = async (pod: SlotPod, slot: number, leaseMs: number): Promise<void> => {
        const claim = { pod: pod.address, session: newSession().key, turnId: 'dead', leaseMs, mayWait: false }
        await bed.ledger.claim({ ...claim, artefactId: undefined, slots: [{ id: slot, idle: true }] })
      }

      test('during a load: the next turn loads', async () => {
        const kv = await begin()
        await dead(second, 0, 60_000)
        await dead(second, 1, 1)
        const presence = async () =>
          (await connector.attach(turnOf(session, second), kv, { signal: anySignal() })).presence
        await eventually(async () => (await presence()).kind === 'loaded')
      })

      test('after it took over a slot: the former session can still be removed', async () => {
        const kv = await begin()
        await dead(first, await ownSlot(), 300)
        expect(await removeSession(kv)).toMatchObject({ kind: 'busy' })
        await eventually(async () => (await removeSession(kv)).kind === 'removed')
        expect(await first.probe(prompt)).toBe(0)
      })

      test('after it took over a slot: the next sweep empties the slot', async () => {
        await begin()
        await dead(first, await ownSlot(), 100)
        await eventually(async () => (await bed.ledger.list(first.address)).every(({ inUse }) => !inUse))
        await sweep()
        expect(await first.probe(prompt)).toBe(0)
      })
    })

    describe('files', () => {
      test('file of another engine or model is not loaded', async () => {
        const kv = await begin()
        const payload = JSON.stringify({ ...JSON.parse(kv.payload), fingerprint: 'of-another-engine' })
        const { attached, usage } = await serve(second, { ...kv, payload })
        expect(attached.presence).toEqual({ kind: 'incompatible' })
        expect([usage.cachedTokens, second.loads(), await bed.artefacts()]).toEqual([
          0,
          0,
          expect.arrayContaining([kv.artefactId]),
        ])
      })

      test('file with another number of tokens than the session’s is not used', async () => {
        const kv = await begin()
        const { attached, usage } = await serve(second, { ...kv, tokens: kv.tokens + 1 })
        expect(attached.presence.kind).toBe('failed')
        expect(usage.cachedTokens).toBe(0)
      })

      test('unfinished files are removed when they are old, and young orphans are kept', async () => {
        const kv = await begin()
        connector = bed.connect({ orphanGraceMs: 60_000 })
        const hourAgo = new Date(Date.now() - 3_600_000)
        const young = ['ctx-1.kv.part']
        const old = ['ctx-2.kv.part']
        const strange = ['notes.txt', 'other.kv']
        for (const name of [...young, ...old, ...strange]) await writeFile(join(bed.kvDirectory, name), 'x')
        for (const name of [...old, ...strange]) await utimes(join(bed.kvDirectory, name), hourAgo, hourAgo)
        await connector.reconcile(async () => new Set(), anySignal())
        expect((await files()).sort()).toEqual([...young, ...strange, `ctx-${kv.artefactId}.kv`].sort())
      })

      test('one file name is written once', async () => {
        const names = new Set<string>()
        let kv: StoredKv | undefined
        for (let turn = 0; turn < 4; turn += 1) {
          const served = await serve(first, kv, prompt + ' More.'.repeat(turn))
          names.add(storedKv(served.offloaded)?.artefactId ?? 'none')
          kv = served.kv
        }
        expect(names.size).toBe(4)
        expect(await files()).toHaveLength(4)
      })
    })
  })
}
