import { describe, expect, test } from '@jest/globals'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import { eventually } from '../../support/eventually.ts'
import {
  anySignal,
  finishTurn,
  type KvTestBed,
  type KvTraits,
  newSession,
  releaseTurn,
  removeSession,
  serveTurn,
  storedBy,
  turnOf,
  withPayload,
} from './kv-test-bed.ts'
import { useKvBed } from './use-kv-bed.ts'

/** The presence of a turn that finds nothing, and had nothing to find. */
const nothingStored = { kind: 'miss', reason: 'nothing_stored' }

/** The engine counts at most this many tokens fewer as cached than are stored: it computes the last ones anyway. */
const mostRecomputed = 8

/** The contract of KvConnector, through the gateway's host of connectors. The engines' `cached_tokens` count. */
export const describeKvConnector = (name: string, make: () => Promise<KvTestBed>, traits: KvTraits): void => {
  describe(`KvConnector: ${name}`, () => {
    const kit = useKvBed(make)
    const { serve, prepare, begin } = kit

    const longer = (): string => `${kit.prompt}${kit.bed.more}`
    /** Prepares the kit.first turn on the kit.first pod, and runs it on `servedBy`. */
    const runFirst = async (servedBy = kit.first) => {
      const turn = turnOf(kit.session, kit.first)
      const { fields, claim } = await kit.cache.prepare(turn, { signal: anySignal() })
      const usage = await servedBy.run({ prompt: kit.prompt, sessionId: kit.session.id, fields })
      return { turn: { ...turn, pod: servedBy.address }, claim, usage }
    }
    const leastCached = (stored: KvArtefact | undefined): number => (stored?.tokens ?? 0) - mostRecomputed

    test('the first turn finds nothing, and its KV is stored', async () => {
      const { prepared, usage, finished, stored } = await serve(kit.first)
      expect(prepared.presence).toMatchObject(nothingStored)
      expect(usage.cachedTokens).toBe(0)
      expect(finished).toMatchObject({ kind: 'stored', bytes: expect.any(Number) })
      expect(stored?.tokens).toBeGreaterThan(0)
      expect(stored?.tokens).toBeLessThanOrEqual(usage.promptTokens + usage.outputTokens)
      expect(await kit.bed.artefacts()).toEqual([stored?.artefactId])
    })

    test('an artefact is announced before it exists', async () => {
      const announced: string[] = []
      const existing: string[] = []
      const { turn, ...end } = await runFirst()
      const finished = await finishTurn(kit.cache, turn, {
        ...end,
        announce: async ({ artefactId }) => {
          announced.push(artefactId)
          existing.push(...(await kit.bed.artefacts()))
        },
      })
      expect(announced).toEqual([storedBy(finished)?.artefactId])
      expect(existing).toEqual([])
    })

    test('an announcement that fails leaves nothing stored, and the pod usable', async () => {
      const { turn, ...end } = await runFirst()
      const announce = () => Promise.reject(new Error('the store is away'))
      const finished = await finishTurn(kit.cache, turn, { ...end, announce })
      expect(finished).toMatchObject({ kind: 'none', reason: 'offload_failed' })
      expect(await kit.bed.artefacts()).toEqual([])
      expect((await serve(kit.first)).finished.kind).toBe('stored')
    })

    test.each([
      { name: 'the pod of the first turn', pod: () => kit.first },
      { name: 'another pod', pod: () => kit.second },
    ])('$name uses all KV that is stored, and what the turn adds', async ({ pod }) => {
      const stored = await begin()
      const next = await serve(pod(), stored, longer())
      expect(next.prepared.presence).toMatchObject({ kind: 'hit', tokens: stored.tokens })
      expect(next.usage.cachedTokens).toBeGreaterThanOrEqual(leastCached(stored))
      expect(next.stored?.artefactId !== stored.artefactId).toBe(next.finished.kind === 'stored')
      const last = await serve(pod(), next.stored, `${longer()}${kit.bed.more}`)
      expect(last.prepared.presence).toMatchObject({ kind: 'hit', tokens: next.stored?.tokens })
      expect(last.usage.cachedTokens).toBeGreaterThan(next.usage.cachedTokens)
      const presences = [next, last].map(({ prepared }) => prepared.presence)
      expect(pod().loads()).toBe(presences.filter((presence) => 'loadMs' in presence).length)
    })

    test('a conversation that alternates between pods and gateways finds its KV at every turn', async () => {
      const gateways = [kit.cache, await kit.bed.connect()]
      let stored: KvArtefact | undefined
      const seen: string[] = []
      for (let index = 0; index < 6; index += 1) {
        const text = kit.prompt + kit.bed.more.repeat(index)
        const pod = index % 2 === 0 ? kit.first : kit.second
        const gateway = gateways[index % 2] ?? kit.cache
        const turn = await serveTurn(gateway, { session: kit.session, pod, prompt: text, stored })
        seen.push(`${turn.prepared.presence.kind} ${turn.usage.cachedTokens >= leastCached(stored)}`)
        stored = turn.stored
      }
      expect(seen).toEqual(['miss true', ...Array(5).fill('hit true')])
    })

    test('another gateway can finish a turn, whose pod has left the list meanwhile', async () => {
      const { turn, ...end } = await runFirst()
      const other = await kit.bed.connect({ pods: [kit.second.address] })
      expect((await finishTurn(other, turn, end)).kind).toBe('stored')
    })

    test('20 concurrent turns on two gateways load the KV once for each place it is needed in', async () => {
      const stored = await begin()
      const other = await kit.bed.connect()
      const prepared = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? kit.cache : other).prepare(turnOf(kit.session, kit.second, { stored }), {
            signal: anySignal(),
          }),
        ),
      )
      const presences = prepared.map(({ presence }) => presence)
      const hits = presences.filter(({ kind }) => kind === 'hit')
      const others = presences.filter(({ kind }) => kind === 'miss')
      expect(hits.length).toBeGreaterThan(0)
      expect(others).toEqual(others.map(() => ({ kind: 'miss', reason: 'no_slot' })))
      expect(kit.second.loads()).toBe(traits.loadedBy === 'gateway' ? hits.length : 0)
    })

    test('of overlapping turns, the KV of the last one is stored', async () => {
      const stored = await begin()
      const prepared = []
      for (const turn of [turnOf(kit.session, kit.first, { stored }), turnOf(kit.session, kit.first, { stored })]) {
        prepared.push({ turn, ...(await kit.cache.prepare(turn, { signal: anySignal() })) })
      }
      // Both are prepared before the first one runs; in one slot they run one after the other.
      const ended = []
      for (const { turn, fields, claim } of prepared) {
        ended.push({ turn, claim, usage: await kit.first.run({ prompt: longer(), sessionId: kit.session.id, fields }) })
      }
      let last = stored
      for (const { turn, ...end } of ended) last = storedBy(await finishTurn(kit.cache, turn, end)) ?? last
      const { prepared: next, usage } = await serve(kit.second, last, `${longer()}${kit.bed.more}`)
      expect(next.presence).toMatchObject({ kind: 'hit', tokens: last.tokens })
      expect(usage.cachedTokens).toBeGreaterThanOrEqual(leastCached(last))
    })

    test('a turn that another pod served is stored from there if the connector finds it, and releases its claim', async () => {
      const { turn, ...end } = await runFirst(kit.second)
      const finished = await finishTurn(kit.cache, turn, end)
      const stored = storedBy(finished)
      expect(finished.kind).toBe(traits.storesElsewhere ? 'stored' : 'none')
      expect(await kit.bed.artefacts()).toEqual(stored === undefined ? [] : [stored.artefactId])
      expect(await removeSession(kit.cache, kit.session, stored)).toEqual({ kind: 'removed' })
      expect(await kit.bed.artefacts()).toEqual([])
    })

    describe('another session with the same prompt', () => {
      test.each([
        { name: 'of another tenant', tenant: 'another tenant', isShared: false },
        { name: 'of the same tenant', tenant: undefined, isShared: traits.sharing === 'tenant' },
      ])('$name starts from the KV: $isShared', async ({ tenant, isShared }) => {
        const stored = await begin()
        const other = await serveTurn(kit.cache, { session: newSession(tenant), pod: kit.first, prompt: kit.prompt })
        expect(other.prepared.presence).toMatchObject(nothingStored)
        if (isShared) expect(other.usage.cachedTokens).toBeGreaterThanOrEqual(leastCached(stored))
        else expect(other.usage.cachedTokens).toBe(0)
        expect((await prepare(kit.first, stored)).presence).toMatchObject({ kind: 'hit', tokens: stored.tokens })
      })

      test('a request without a session starts from no KV', async () => {
        await begin()
        const fields = kit.cache.isolation(kit.session.tenant)
        expect((await kit.first.run({ prompt: kit.prompt, fields })).cachedTokens).toBe(0)
      })
    })

    describe('KV that is gone', () => {
      test('a removed artefact is missing, and the turn runs without it and is stored', async () => {
        const stored = await begin()
        await removeSession(kit.cache, kit.session, stored)
        const { prepared, usage, finished } = await serve(kit.second, stored)
        expect(prepared.presence).toMatchObject({ kind: 'miss', reason: 'kv_missing' })
        expect([usage.cachedTokens, finished.kind]).toEqual([0, 'stored'])
      })

      test.each(traits.damage)('an artefact that was %s is not used', async (how) => {
        const stored = await begin()
        await kit.bed.damage(stored.artefactId, how)
        expect((await serve(kit.second, stored)).usage.cachedTokens).toBe(0)
      })

      test('a pod that restarted loads the KV again', async () => {
        const stored = await begin()
        await kit.first.restart()
        const { prepared, usage } = await serve(kit.first, stored, longer())
        expect(prepared.presence).toMatchObject({ kind: 'hit', tier: 'store', tokens: stored.tokens })
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(leastCached(stored))
      })

      test('an artefact with an unreadable payload is not used', async () => {
        const stored = withPayload(await begin(), '{"file":"../../etc/passwd"}')
        const { presence } = await prepare(kit.second, stored)
        expect([presence.kind, kit.second.loads()]).toEqual(['miss', 0])
      })
    })

    describe('the budget', () => {
      test('a turn without budget continues at once without its KV', async () => {
        const stored = await begin()
        const { turn, ...prepared } = await prepare(kit.second, stored, AbortSignal.abort())
        expect(prepared.presence).toMatchObject({ kind: 'miss', reason: 'load_timeout' })
        expect((await kit.second.run({ prompt: kit.prompt, fields: prepared.fields })).cachedTokens).toBe(0)
        await releaseTurn(kit.cache, turn, prepared)
        // The load that was given up may still be on its way to the pod, and holds its slot meanwhile.
        await eventually(async () => (await removeSession(kit.cache, kit.session, stored)).kind === 'removed')
      })

      if (traits.loadedBy === 'gateway') {
        test('a turn waits for its load until its budget ends, and the load is completed', async () => {
          const stored = await begin()
          const completeLoads = kit.second.holdLoads()
          const leave = new AbortController()
          const preparing = prepare(kit.second, stored, leave.signal)
          await eventually(() => kit.second.loads() === 1)
          leave.abort()
          const { turn, ...prepared } = await preparing
          expect(prepared.presence).toMatchObject({ kind: 'miss', reason: 'load_timeout' })
          expect((await kit.first.run({ prompt: kit.prompt, fields: prepared.fields })).cachedTokens).toBe(0)
          await releaseTurn(kit.cache, turn, prepared)
          completeLoads()
          await eventually(async () => (await removeSession(kit.cache, kit.session, stored)).kind === 'removed')
          expect(await kit.second.probe(kit.prompt)).toBe(0)
        })
      }
    })

    describe('unreachable pods', () => {
      const nowhere = '127.0.0.1:9'

      test('a turn continues without its KV', async () => {
        kit.cache = await kit.bed.connect({ pods: [nowhere] })
        const { presence, fields } = await prepare({ ...kit.first, address: nowhere })
        expect(presence).toMatchObject({ kind: 'miss', reason: 'load_failed' })
        expect(Object.keys(fields)).toEqual(
          expect.arrayContaining(Object.keys(kit.cache.isolation(kit.session.tenant))),
        )
      })

      test('an address that is not configured is never called', async () => {
        kit.cache = await kit.bed.connect({ pods: [kit.second.address] })
        const { presence } = await prepare(kit.first)
        const cause = expect.objectContaining({ message: 'the pod is not configured' })
        expect(presence).toMatchObject({ kind: 'miss', reason: 'load_failed', cause })
      })
    })
  })
}
