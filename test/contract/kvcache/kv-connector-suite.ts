import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { StoredKv } from '../../../src/sessions/session-record.ts'
import { eventually } from '../../support/eventually.ts'
import {
  anySignal,
  type KvTestBed,
  type KvTraits,
  newSession,
  serveTurn,
  slotTraits,
  storedKv,
  type TestPod,
  type TestSession,
  type TestUsage,
  turnOf,
} from './kv-test-bed.ts'
import type { KvConnector, KvTurn } from './old-kv-port.ts'

const timeoutMs = 60_000

/** The contract of KvConnector. The engines' own `cached_tokens` tells whether KV was used. */
export const describeKvConnector = (
  name: string,
  make: () => Promise<KvTestBed>,
  traits: KvTraits = slotTraits,
): void => {
  describe(`KvConnector: ${name}`, () => {
    let bed: KvTestBed
    let connector: KvConnector
    let first: TestPod
    let second: TestPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      connector = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = traits.newPrompt()
    }, timeoutMs)
    afterEach(() => bed.close(), timeoutMs)

    const serve = (pod: TestPod, kv?: StoredKv, text = prompt) =>
      serveTurn(connector, { session, pod, prompt: text, kv })
    const attach = (pod: TestPod, kv?: StoredKv, signal = anySignal()) =>
      connector.attach(turnOf(session, pod), kv, { signal })
    /** Serves the first turn on the first pod. */
    const begin = async (): Promise<StoredKv> => {
      const { kv, offloaded } = await serve(first)
      if (kv === undefined) throw new Error(`the first turn stored nothing: ${inspect(offloaded)}`)
      return kv
    }
    const removeSession = (kv: StoredKv | undefined) =>
      connector.remove({ kind: 'session', session: session.key, payload: kv?.payload }, anySignal())
    const longer = (): string => `${prompt}${traits.more}`
    /** What an offload needs of a turn that has ended. */
    const ended = (turn: KvTurn, claim: string, { promptTokens, outputTokens }: TestUsage) => ({
      turn,
      claim,
      totalTokens: promptTokens + outputTokens,
      promptTokens,
      announce: async () => {},
      signal: anySignal(),
    })
    /** Attaches the creating turn on the first pod, runs it on `servedBy`, and resolves to what its offload needs. */
    const runFirst = async (servedBy = first) => {
      const turn = turnOf(session, first)
      const { fields, claim } = await connector.attach(turn, undefined, { signal: anySignal() })
      const usage = await servedBy.run({ prompt, sessionId: session.id, fields })
      return ended({ ...turn, pod: servedBy.address }, claim, usage)
    }

    test('the first turn finds nothing, and its KV is stored', async () => {
      const { attached, usage, offloaded } = await serve(first)
      expect(attached.presence).toEqual({ kind: 'empty' })
      expect(usage.cachedTokens).toBe(0)
      expect(offloaded).toMatchObject({ kind: 'stored', bytes: expect.any(Number) })
      expect(traits.storedTokens(usage)).toContain(storedKv(offloaded)?.tokens)
      expect(await bed.artefacts()).toEqual([storedKv(offloaded)?.artefactId])
    })

    test('an artefact is announced before it exists', async () => {
      const announced: string[] = []
      const existing: string[] = []
      const offloaded = await connector.offload({
        ...(await runFirst()),
        announce: async ({ artefactId }) => {
          announced.push(artefactId)
          existing.push(...(await bed.artefacts()))
        },
      })
      expect(announced).toEqual([storedKv(offloaded)?.artefactId])
      expect(existing).toEqual([])
    })

    test('an announcement that fails leaves nothing stored, and the pod usable', async () => {
      const announce = () => Promise.reject(new Error('the store is away'))
      const offloaded = await connector.offload({ ...(await runFirst()), announce })
      expect(offloaded).toMatchObject({ kind: 'none', reason: 'offload_failed' })
      expect(await bed.artefacts()).toEqual([])
      expect((await serve(first)).offloaded.kind).toBe('stored')
    })

    test('the pod of the first turn still holds its KV', async () => {
      const kv = await begin()
      const { attached, usage } = await serve(first, kv, longer())
      expect(attached.presence).toEqual(traits.onItsPod(kv.tokens))
      expect(usage.cachedTokens).toBeGreaterThanOrEqual(kv.tokens - 8)
      expect(first.loads()).toBe(0)
    })

    test('another pod loads the KV, holds it from then on, and stores the longer conversation', async () => {
      const kv = await begin()
      const other = await serve(second, kv, longer())
      expect(other.attached.presence).toEqual(traits.onAnotherPod(kv.tokens))
      expect(other.usage.cachedTokens).toBeGreaterThanOrEqual(kv.tokens - 8)
      expect((other.kv?.tokens ?? 0) > kv.tokens).toBe(traits.grows)
      expect(other.kv?.artefactId !== kv.artefactId).toBe(traits.grows)
      const again = await serve(second, other.kv, `${longer()}${traits.more}`)
      expect(again.attached.presence).toEqual(traits.onItsLastPod(other.kv?.tokens ?? 0))
      expect(second.loads()).toBe(traits.loadedBy === 'gateway' ? 1 : 0)
    })

    test('a pod that served an earlier turn gets the KV of the later one', async () => {
      const kv = await begin()
      const other = await serve(second, kv, longer())
      const back = await serve(first, other.kv, `${longer()}${traits.more}`)
      expect(back.attached.presence).toMatchObject(traits.onItsFormerPod(other.kv?.tokens ?? 0))
      expect(back.usage.cachedTokens).toBeGreaterThanOrEqual((other.kv?.tokens ?? 0) - 8)
    })

    test('a conversation that alternates between pods and gateways finds its KV at every turn', async () => {
      const gateways = [connector, bed.connect()]
      let kv: StoredKv | undefined
      const seen: string[] = []
      for (let index = 0; index < 6; index += 1) {
        const text = prompt + traits.more.repeat(index)
        const pod = index % 2 === 0 ? first : second
        const turn = await serveTurn(gateways[index % 2] ?? connector, { session, pod, prompt: text, kv })
        seen.push(`${turn.attached.presence.kind} ${turn.usage.cachedTokens >= (kv?.tokens ?? 0) - 8}`)
        kv = turn.kv
      }
      const back = Array(4).fill(traits.onItsFormerPod(0))
      const kinds = [{ kind: 'empty' }, traits.onAnotherPod(0), ...back].map(({ kind }) => `${kind} true`)
      expect(seen).toEqual(kinds)
    })

    test('another gateway can settle a claim', async () => {
      const other = bed.connect()
      expect((await other.offload(await runFirst())).kind).toBe('stored')
    })

    test('20 concurrent turns on two gateways load the KV once for each place it is needed in', async () => {
      const kv = await begin()
      const other = bed.connect()
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? connector : other).attach(turnOf(session, second), kv, { signal: anySignal() }),
        ),
      )
      const hits = outcomes.filter(({ presence }) => ['loaded', 'resident', 'on-demand'].includes(presence.kind))
      expect(hits).toHaveLength(traits.hitsOfTwoGateways)
      expect(traits.loadsOfTwoGateways).toContain(second.loads())
    })

    test('of overlapping turns, the KV of the last one is stored', async () => {
      const kv = await begin()
      const turns = [turnOf(session, first), turnOf(session, first)]
      const claimed = await Promise.all(
        turns.map(async (turn) => ({ turn, ...(await connector.attach(turn, kv, { signal: anySignal() })) })),
      )
      // Both are claimed before the first one runs; in one slot they run one after the other.
      const usages: TestUsage[] = []
      for (const { fields } of claimed) {
        usages.push(await first.run({ prompt: longer(), sessionId: session.id, fields }))
      }
      const offloaded: string[] = []
      for (const [index, { turn, claim }] of claimed.entries()) {
        const usage = usages[index] ?? { promptTokens: 0, outputTokens: 0, cachedTokens: 0 }
        offloaded.push((await connector.offload(ended(turn, claim, usage))).kind)
      }
      expect(traits.overlappingTurns).toContainEqual(offloaded)
    })

    test('a failed turn releases its claim', async () => {
      const turn = turnOf(session, first)
      const { claim } = await connector.attach(turn, undefined, { signal: anySignal() })
      expect(await removeSession(undefined)).toMatchObject({ kind: traits.removalDuringTurn })
      await connector.detach(turn, claim, anySignal())
      expect(await removeSession(undefined)).toEqual({ kind: 'removed' })
    })

    const servedElsewhere = {
      lost: () =>
        test('a turn served by another pod stores nothing and releases its claim', async () => {
          const turn = turnOf(session, first)
          const { claim } = await connector.attach(turn, undefined, { signal: anySignal() })
          const offloaded = await connector.offload({
            turn: { ...turn, pod: second.address },
            claim,
            totalTokens: 400,
            announce: async () => {},
            signal: anySignal(),
          })
          expect(offloaded).toEqual({ kind: 'none', reason: 'served_elsewhere' })
          expect(await removeSession(undefined)).toEqual({ kind: 'removed' })
        }),
      stored: () =>
        test('a turn served by another pod is offloaded from there', async () => {
          const kv = storedKv(await connector.offload(await runFirst(second)))
          expect(kv).toBeDefined()
          expect((await attach(second, kv)).presence).toEqual(traits.onItsPod(kv?.tokens ?? 0))
          expect(await removeSession(kv)).toEqual({ kind: 'removed' })
        }),
    }
    servedElsewhere[traits.servedElsewhere]()

    test(`a short conversation is ${traits.storesShort ? '' : 'not '}stored`, async () => {
      const { offloaded } = await serve(first, undefined, 'Hi')
      expect(offloaded).toMatchObject(traits.storesShort ? { kind: 'stored' } : { kind: 'none', reason: 'too_short' })
      expect(await bed.artefacts()).toHaveLength(traits.storesShort ? 1 : 0)
    })

    const sharing = {
      nobody: () =>
        test('two sessions with the same prompt never share KV', async () => {
          const kv = await begin()
          const stranger = await serveTurn(connector, { session: newSession(), pod: first, prompt })
          expect(stranger.attached.presence).toEqual({ kind: 'empty' })
          expect(stranger.usage.cachedTokens).toBe(0)
          expect((await attach(first, kv)).presence).toEqual(traits.onItsPod(kv.tokens))
        }),
      tenant: () =>
        test('sessions of one tenant with the same prompt share KV, those of two tenants never do', async () => {
          const kv = await begin()
          const stranger = await serveTurn(connector, { session: newSession('another tenant'), pod: first, prompt })
          expect([stranger.attached.presence, stranger.usage.cachedTokens]).toEqual([{ kind: 'empty' }, 0])
          const fellow = await serveTurn(connector, { session: newSession(), pod: first, prompt })
          expect(fellow.attached.presence).toEqual({ kind: 'empty' })
          expect(fellow.usage.cachedTokens).toBeGreaterThanOrEqual(kv.tokens - 8)
          expect((await attach(first, kv)).presence).toEqual(traits.onItsPod(kv.tokens))
        }),
    }
    sharing[traits.sharing]()

    describe('KV that is gone', () => {
      test('a removed artefact is missing, and the turn runs without it', async () => {
        const kv = await begin()
        await removeSession(kv)
        const { attached, usage, offloaded } = await serve(second, kv)
        expect(attached.presence).toMatchObject({ kind: 'missing' })
        expect(usage.cachedTokens).toBe(0)
        expect(offloaded.kind).toBe(traits.afterMissing)
      })

      test.each(traits.damage)('an artefact that was %s is not used', async (how) => {
        const kv = await begin()
        await bed.damage(kv.artefactId, how)
        const { attached, usage } = await serve(second, kv)
        expect(attached.presence).toMatchObject({ kind: traits.damaged })
        expect(usage.cachedTokens).toBe(0)
      })

      test('a pod that restarted loads the KV again', async () => {
        const kv = await begin()
        await first.restart()
        const { attached, usage } = await serve(first, kv, longer())
        expect(attached.presence).toEqual(traits.onAnotherPod(kv.tokens))
        expect(usage.cachedTokens).toBeGreaterThanOrEqual(kv.tokens - 8)
      })

      test(`an artefact with an unreadable payload is ${traits.unreadable}`, async () => {
        const kv = await begin()
        expect((await attach(second, { ...kv, payload: '{"file":"../../etc/passwd"}' })).presence).toEqual({
          kind: traits.unreadable,
        })
      })
    })

    describe('the budget', () => {
      test('a turn without budget continues at once without its KV, and claims nothing', async () => {
        const kv = await begin()
        const { presence, fields } = await attach(second, kv, AbortSignal.abort())
        expect([presence, fields]).toEqual([{ kind: 'timed-out' }, traits.fieldsAlone])
        expect(await removeSession(kv)).toEqual({ kind: 'removed' })
      })

      const waiting = {
        gateway: () => {
          test('a turn waits for its load until its budget ends, and the load is completed', async () => {
            const kv = await begin()
            const releaseLoads = second.holdLoads()
            const leave = new AbortController()
            const attaching = attach(second, kv, leave.signal)
            await eventually(() => second.loads() === 1)
            leave.abort()
            const { presence, fields, claim } = await attaching
            expect([presence, fields]).toEqual([{ kind: 'timed-out' }, traits.fieldsAlone])
            const nothing = { turn: turnOf(session, second), claim, totalTokens: 400, signal: anySignal() }
            const { kind } = await connector.offload({ ...nothing, announce: async () => {} })
            expect(kind).toBe('none')
            releaseLoads()
            await eventually(async () => (await removeSession(kv)).kind === 'removed')
            expect(await second.probe(prompt)).toBe(0)
          })

          test('a load that exceeds the time limit fails, and its claim is released when the engine answers', async () => {
            const kv = await begin()
            connector = bed.connect({ callTimeoutMs: 200 })
            const releaseLoads = second.holdLoads()
            expect((await attach(second, kv)).presence).toMatchObject({ kind: 'failed' })
            expect(await removeSession(undefined)).toMatchObject({ kind: traits.removalDuringTurn })
            releaseLoads()
            connector = bed.connect()
            await eventually(async () => (await removeSession(kv)).kind === 'removed')
            expect(await second.probe(prompt)).toBe(0)
          })
        },
        engine: () => {},
      }
      waiting[traits.loadedBy]()
    })

    describe('unreachable pods', () => {
      const nowhere = '127.0.0.1:9'

      test('a turn continues without its KV', async () => {
        connector = bed.connect({ pods: [nowhere] })
        const turn = { ...turnOf(session, first), pod: nowhere }
        const { presence, fields } = await connector.attach(turn, undefined, { signal: anySignal() })
        expect([presence.kind, fields]).toEqual([traits.unreachable, traits.fieldsAlone])
      })

      test('an address that is not configured is never called', async () => {
        connector = bed.connect({ pods: [second.address] })
        expect((await attach(first)).presence).toMatchObject({
          kind: 'failed',
          cause: expect.objectContaining({ message: 'the pod is not configured' }),
        })
      })
    })
  })
}
