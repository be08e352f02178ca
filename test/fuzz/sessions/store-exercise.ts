import { expect } from '@jest/globals'
import type { ClaimedRemoval } from '../../../src/sessions/removal-queue.ts'
import type { SessionKey, SessionRecord, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'
import type { TurnExpiry, WholeSession } from '../../../src/sessions/session-store.ts'
import { artefactOf, type StoreUnderTest } from '../../contract/sessions/store-under-test.ts'
import { forkOf, named, newSessionOf, otherNamed, type Turn, tenants, turnOf } from './exercised-sessions.ts'
import { dropArtefact, fork, knows, note } from './fork-model.ts'
import type { ModelOptions, ModelSession } from './model-session.ts'
import { beginNamed, expectedBranchesOf } from './named-model.ts'
import { branchesOf, pick } from './picked-fields.ts'
import { SessionModel } from './session-model.ts'
import { type OperationName, type StoreOperation, unitMs, unitSeconds } from './store-operation.ts'

const usage = { prompt: 100, output: 10, cached: 50 }

/** The same steps for a store and the model, comparing every answer. */
export class StoreExercise {
  readonly #under: StoreUnderTest
  readonly #model: SessionModel
  readonly #kvLimit: ModelOptions['kvLimit']
  readonly #announced: { readonly session: SessionKey; readonly kv: StoredKv }[] = []
  readonly #claimed: ClaimedRemoval[] = []
  /** Begun and not ended, as far as whoever began them knows. */
  readonly #open: Turn[] = []
  /** Artefacts that were announced and are not gone yet: the store must know every one. */
  readonly #owed = new Set<string>()

  constructor(under: StoreUnderTest, options: ModelOptions) {
    this.#under = under
    this.#model = new SessionModel(options)
    this.#kvLimit = options.kvLimit
  }

  async perform(operation: StoreOperation): Promise<void> {
    await this.#steps[operation.name](operation)
    const known = await this.#under.store.knownArtefacts(this.#announced.map(({ kv }) => kv.artefactId))
    const expected = this.#announced.map(({ kv }) => kv.artefactId).filter((id) => knows(this.#model, id))
    expect([...known].sort()).toEqual([...new Set(expected)].sort())
    expect([...this.#owed].filter((id) => !known.has(id))).toEqual([])
  }

  readonly #steps: Readonly<Record<OperationName, (operation: StoreOperation) => Promise<void>>> = {
    create: async (operation) => {
      const wanted = newSessionOf(operation)
      const outcome = await this.#under.store.create(wanted)
      const expected = this.#model.create(wanted)
      expect(outcome.kind).toBe(expected.kind)
      if (outcome.kind === 'key-reused' || outcome.kind === 'limited') return
      this.#open.push({ key: expected.key, tenant: wanted.tenant, turnId: wanted.turnId })
      await this.#compare(outcome.record, expected.key)
    },

    begin: async (operation) => {
      const { key, tenant, turnId } = turnOf(operation)
      const leaseMs = operation.time * unitMs
      const outcome = await this.#under.store.begin({ key, tenant, turnId, leaseMs })
      const state = this.#model.begin(key, tenant, turnId, leaseMs)
      expect(outcome.kind).toBe(state === 'creating' ? 'active' : state)
      if (outcome.kind === 'active' || outcome.kind === 'expired') this.#open.push({ key, tenant, turnId })
      if (outcome.kind === 'active') await this.#compare(outcome.record, key)
      if (outcome.kind === 'expired') {
        const kept = pick(this.#model.look(key), ['ttlSeconds', 'model'])
        expect(outcome).toEqual({ kind: 'expired', cause: 'time', nowMs: expect.any(Number), ...kept })
      } else if (outcome.kind !== 'active') expect(outcome).toMatchObject({ kind: state })
    },

    beginNamed: async (operation) => {
      const { sealedId, model, ttlSeconds, leaseMs, ...turn } = {
        ...newSessionOf(operation),
        ...(operation.retry === 'none' ? { key: named } : { key: otherNamed, tenant: tenants[1] }),
      }
      const marks = [`mark-${operation.count}`, `mark-${operation.back}`].slice(0, 1 + operation.digest)
      const forksBranch = operation.expiry !== 'keep'
      const earlier = operation.body === 1 ? { key: otherNamed, tenant: tenants[1] } : undefined
      const wanted = { ...turn, sealedId, model, ttlSeconds, leaseMs, marks, earlier, maxNamedSessions: 1000 }
      const outcome = await this.#under.store.beginNamed({ ...wanted, forksBranch })
      const sharedId =
        outcome.kind === 'created' || outcome.kind === 'active' ? outcome.record.kv?.artefactId : undefined
      const { kind, key } = beginNamed(this.#model, { ...wanted, forksBranch }, sharedId)
      expect(outcome.kind).toBe(kind)
      if (kind !== 'deleted' && kind !== 'unknown' && kind !== 'limited')
        this.#open.push({ ...turn, key, tenant: this.#model.sessions.get(key)?.tenant ?? turn.tenant })
      if (outcome.kind === 'created' || outcome.kind === 'active') await this.#compare(outcome.record, key)
    },

    fork: async (operation) => {
      const { key, tenant } = turnOf(operation)
      const ttlSeconds = operation.retry === 'none' ? undefined : operation.time * unitSeconds
      const forkKey = forkOf(operation.session, operation.digest === 1)
      const wanted = {
        from: { key, tenant },
        session: { key: forkKey, sealedId: `sealed${operation.text}`, ttlSeconds },
      }
      const outcome = await this.#under.store.fork(wanted)
      expect(outcome.kind).toBe(fork(this.#model, wanted))
      if (outcome.kind === 'forked') await this.#compare(outcome.record, forkKey)
    },

    complete: async (operation) => {
      const { key, tenant, turnId } = this.#endedTurn(operation)
      const pod = `pod-${operation.count}:8000`
      const expiry = (nowMs: number): TurnExpiry =>
        operation.expiry === 'set'
          ? {
              kind: 'set',
              ttlSeconds: operation.time * unitSeconds,
              expiresAtMs: nowMs + operation.time * unitMs,
            }
          : { kind: operation.expiry }
      const turn = { turnId, pod, usage }
      const byStore = { key, tenant, ...turn, expiry: expiry(await this.#under.nowMs()) }
      const outcome = await this.#under.store.complete(byStore)
      expect(outcome.kind).toBe(this.#model.complete(key, tenant, { ...turn, expiry: expiry(this.#model.nowMs) }))
      if (outcome.kind === 'completed') await this.#compare(outcome.record, key)
    },

    abandon: async (operation) => {
      const { key, tenant, turnId } = this.#endedTurn(operation)
      await this.#under.store.abandon({ key, tenant, turnId })
      this.#model.abandon(key, tenant, turnId)
    },

    announce: async (operation) => {
      const { key } = turnOf(operation)
      const artefactId = artefactOf(`artefact-${this.#announced.length}`, key)
      // Some are too large for the session's own record.
      const payload = `${artefactId}\n${operation.text}${'\n'.repeat(operation.digest * 300)}`
      const kv = { artefactId, payload, tokens: 0, bytes: 0, turn: 0 }
      const graceMs = (operation.time - 1) * unitMs
      await this.#under.store.announce({ artefactId, session: key, payload: kv.payload, graceMs })
      this.#model.announce(key, kv, graceMs)
      this.#announced.push({ session: key, kv })
      this.#owed.add(artefactId)
    },

    commit: async (operation) => {
      const announced = this.#announced.at(-1 - operation.back)
      if (announced === undefined) return
      const kv = { ...announced.kv, tokens: operation.time, bytes: operation.otherTime, turn: operation.count }
      const { session: key } = announced
      const isLate = operation.body === 1
      const needsRoom =
        this.#model.mayCommit(key, kv, isLate) &&
        this.#model.tenants.fits(key, kv) &&
        this.#model.isTooMuch(key, kv) &&
        kv.bytes <= this.#kvLimit.maxBytes
      const tenant = this.#model.live(key)?.tenant ?? tenants[0]
      const { createdAtMs = 0 } = (await this.#get(key, tenant)) ?? {}
      const life = isLate ? createdAtMs - unitMs : createdAtMs
      const won = await this.#under.store.commitKv({ key, tenant, createdAtMs: life, kv })
      if (needsRoom) {
        this.#model.expireDue()
        await this.#followEvictions(this.#kvLimit.maxBytes - kv.bytes, key)
      }
      expect(won).toBe(this.#model.commit(key, kv, isLate))
      this.#owed.add(kv.artefactId)
    },

    store: async (operation) => {
      await this.#steps.announce({ ...operation, time: 2 })
      await this.#steps.commit({ ...operation, back: 0, body: 0 })
    },

    note: async (operation) => {
      const { key } = turnOf(operation)
      await this.#under.store.setKvStatus({ key, status: `note-${operation.count}` })
      note(this.#model, key, `note-${operation.count}`)
    },

    get: async (operation) => {
      const { key, tenant } = turnOf(operation)
      const record = await this.#get(key, tenant)
      const expected = this.#model.live(key, tenant)
      expect(record?.key).toBe(expected?.key)
      expect(branchesOf(record)).toEqual(expectedBranchesOf(this.#model, expected))
      if (record !== undefined) await this.#compare(record, key)
    },

    list: async (operation) => {
      const tenant = tenants[operation.tenant] ?? tenants[0]
      const records: WholeSession[] = []
      for (let more = true; more; ) {
        const page = await this.#under.store.list({ tenant, limit: operation.count, after: records.at(-1)?.key })
        expect(page.records.length).toBeLessThanOrEqual(operation.count)
        records.push(...page.records)
        more = page.hasMore
        expect(more && page.records.length === 0).toBe(false)
      }
      const expected = this.#model.liveOf(tenant)
      const listed = records.map((record) => [record.key, ...branchesOf(record)])
      const live = expected.map((session) => [session.key, ...expectedBranchesOf(this.#model, session)])
      expect(listed.map(String).sort()).toEqual(live.map(String).sort())
      const createdMs = records.map(({ createdAtMs }) => createdAtMs)
      expect(createdMs).toEqual(createdMs.toSorted((a, b) => b - a))
      for (const record of records) await this.#compare(record, record.key)
    },

    setTtl: async (operation) => {
      const { key, tenant } = turnOf(operation)
      const ttlSeconds = operation.time * unitSeconds
      const record = await this.#under.store.setTtl({ key, tenant, ttlSeconds })
      expect(record !== undefined).toBe(this.#model.setTtl(key, tenant, ttlSeconds))
      expect(branchesOf(record)).toEqual(expectedBranchesOf(this.#model, this.#model.live(key, tenant)))
      if (record !== undefined) await this.#compare(record, key)
    },

    remove: async (operation) => {
      const { key, tenant } = turnOf(operation)
      expect(await this.#under.store.remove({ key, tenant })).toBe(this.#model.remove(key, tenant))
      expect(await this.#get(key, tenant)).toBeUndefined()
    },

    expireDue: async () => {
      // A branch that ends with its session counts or not, by which of them is looked at first.
      expect((await this.#under.store.expireDue(100)).ended > 0).toBe(this.#model.expireDue() > 0)
    },

    evict: async () => {
      const targetBytes = this.#kvLimit.maxBytes * this.#kvLimit.threshold
      const steps = await this.#under.store.evict(100)
      if (this.#model.kvBytes() > targetBytes) this.#model.expireDue()
      expect(await this.#followEvictions(targetBytes)).toBe(steps)
    },

    dropArtefacts: async (operation) => {
      const some = this.#announced.slice(-1 - operation.back)
      const artefactIds = [...some.map(({ kv }) => kv.artefactId), artefactOf('artefact-of-nobody')]
      const dropped = await this.#under.store.dropArtefacts({ artefactIds, reason: 'stale' })
      const before = this.#model.kvBytes()
      const had = some.filter(({ kv }) => dropArtefact(this.#model, kv.artefactId, 'stale'))
      expect(this.#model.kvBytes()).toBeLessThanOrEqual(before)
      expect(dropped).toBe(had.length)
    },

    claim: async (operation) => {
      const limit = operation.count * operation.count
      const leaseMs = operation.time * unitMs
      const due = this.#model.removals.due()
      const claimed = await this.#under.store.claim({ limit, leaseMs })
      expect(claimed.length).toBe(Math.min(limit, due.length))
      expect(claimed.filter(({ id }) => !due.includes(id))).toEqual([])
      expect(claimed).toEqual(claimed.map((removal) => this.#model.removals.claim(removal, leaseMs)))
      this.#claimed.push(...claimed)
    },

    ack: async (operation) => {
      const claimed = this.#claimed.at(-1 - operation.back)
      if (claimed === undefined) return
      await this.#under.store.ack([claimed])
      const gone = this.#model.removals.ack(claimed)
      if (gone !== undefined) this.#owed.delete(gone)
    },

    retryLater: async (operation) => {
      const claimed = this.#claimed.at(-1 - operation.back)
      if (claimed === undefined) return
      await this.#under.store.retryLater(claimed, operation.time * unitMs)
      this.#model.removals.retryLater(claimed, operation.time * unitMs)
    },

    counts: async () => {
      // Sets right what is right.
      for (let step = 0; step < 3; step += 1) await this.#under.store.recount(2)
      const sessions = [...this.#model.sessions.values()].filter((session) => this.#model.isLive(session)).length
      expect(await this.#under.store.counts()).toEqual({ removals: this.#model.removals.size, sessions })
      expect((await this.#under.store.sizes()).kvBytes).toBe(this.#model.kvBytes())
    },

    advance: async (operation) => {
      await this.#under.advance(operation.time * unitMs)
      this.#model.advance(operation.time * unitMs)
    },
  }

  /**
   * Which KV goes is the store's choice: takes it over, and checks that no more went than had to, and nothing of a
   * session in a turn. Resolves to how many artefacts went.
   */
  async #followEvictions(targetBytes: number, spared?: SessionKey): Promise<number> {
    const evicted: number[] = []
    const isInUse = (holders: readonly ModelSession[]): boolean =>
      holders.some((holder) => holder.key === spared || this.#model.isHeld(holder))
    for (const session of this.#model.sessions.values()) {
      const { key, tenant, kv } = session
      if (kv === undefined || !this.#model.isLive(session) || this.#model.isOver(session)) continue
      const record = await this.#get(key, tenant)
      if (record?.kv !== undefined) continue
      expect([record?.kvStatus, isInUse(this.#model.holdersOf(kv.artefactId))]).toEqual(['kv_evicted', false])
      evicted.push(kv.bytes)
      dropArtefact(this.#model, kv.artefactId, 'kv_evicted')
    }
    const left = this.#model.kvBytes(spared)
    const evictable = [...this.#model.sessions.values()].filter(
      ({ kv }) => kv !== undefined && !isInUse(this.#model.holdersOf(kv.artefactId)),
    )
    if (left > targetBytes) expect(evictable).toEqual([])
    expect(evicted.length === 0 || left + Math.max(...evicted) > targetBytes).toBe(true)
    return evicted.length
  }

  /** A look at a session ends it, or a branch of it, where its time is over. */
  #get(key: SessionKey, tenant: TenantKey): Promise<WholeSession | undefined> {
    expectedBranchesOf(this.#model, this.#model.live(key, tenant))
    return this.#under.store.get({ key, tenant })
  }

  /** Takes an open turn, or else any one: it may be unknown, over, or another tenant's. */
  #endedTurn(operation: StoreOperation): Turn {
    const at = this.#open.length - 1 - operation.back
    const [open] = operation.isOfOpenTurn && at >= 0 ? this.#open.splice(at, 1) : []
    return open ?? turnOf(operation)
  }

  /** Times are compared by their distance from now, in units. */
  async #compare(record: SessionRecord, key: SessionKey): Promise<void> {
    const storeNowMs = await this.#under.nowMs()
    const units = (atMs: number, nowMs: number): number => Math.round((atMs - nowMs) / unitMs)
    const expected = this.#model.sessions.get(key)
    const plain = [
      'key',
      'tenant',
      'sealedId',
      'model',
      'ttlSeconds',
      'turns',
      'tokens',
      'pod',
      'kv',
      'kvStatus',
    ] as const
    expect(pick(record, plain)).toEqual(pick(expected, plain))
    expect([record.createdAtMs, record.expiresAtMs].map((atMs) => units(atMs, storeNowMs) + 0)).toEqual(
      [expected?.createdAtMs, expected?.expiresAtMs].map((atMs) => units(atMs ?? Number.NaN, this.#model.nowMs) + 0),
    )
  }
}
