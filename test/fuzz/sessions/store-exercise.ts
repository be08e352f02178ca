import { expect } from '@jest/globals'
import type { Removal } from '../../../src/sessions/removal-queue.ts'
import type { SessionKey, SessionRecord, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'
import type { CompleteTurn, NewSession } from '../../../src/sessions/session-store.ts'
import { type StoreUnderTest, sessionKey, tenantKey } from '../../contract/sessions/store-under-test.ts'
import { type OperationName, type StoreOperation, unitMs, unitSeconds } from './store-operation.ts'

const tenants = [tenantKey('alice'), tenantKey('mallory')] as const
const usage = { prompt: 100, output: 10, cached: 50 }

interface Turn {
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly turnId: string
}

/** Performs operations on a store. Every answer has a form that is equal for stores that behave alike. */
export class StoreExercise {
  readonly #under: StoreUnderTest
  readonly #announced: { readonly session: SessionKey; readonly kv: StoredKv }[] = []
  readonly #claimed: Removal[] = []
  /** Turns that hold a lease, each with the end of its lease. */
  #open: (Turn & { readonly untilMs: number })[] = []
  /** Artefacts whose removal was not acknowledged: the store must know every one. */
  readonly #owed = new Set<string>()
  /** Of the operations alone. */
  #nowMs = 0

  constructor(under: StoreUnderTest) {
    this.#under = under
  }

  async perform(operation: StoreOperation): Promise<unknown> {
    const answer = await this.#steps[operation.name](operation)
    const known = await this.#under.store.knownArtefacts(this.#announced.map(({ kv }) => kv.artefactId))
    expect([...this.#owed].filter((id) => !known.has(id))).toEqual([])
    return { answer, known: [...known].sort() }
  }

  /** The KV of every session that a turn holds. */
  async heldKv(): Promise<ReadonlyMap<SessionKey, StoredKv | undefined>> {
    const held = this.#open.filter(({ untilMs }) => untilMs > this.#nowMs)
    const records = await Promise.all(held.map((turn) => this.#under.store.get(turn)))
    return new Map(records.flatMap((record) => (record === undefined ? [] : [[record.key, record.kv] as const])))
  }

  readonly #steps: Readonly<Record<OperationName, (operation: StoreOperation) => Promise<unknown>>> = {
    create: async (operation) => {
      const wanted = this.#newSession(operation)
      const outcome = await this.#under.store.create(wanted)
      if (outcome.kind === 'key-reused') return outcome
      this.#opened({ ...wanted, key: outcome.record.key }, wanted.leaseMs)
      return { ...outcome, record: await this.#comparable(outcome.record) }
    },

    begin: async (operation) => {
      const turn = this.#turn(operation)
      const leaseMs = operation.time * unitMs
      const outcome = await this.#under.store.begin({ ...turn, leaseMs })
      if (outcome.kind === 'deleted' || outcome.kind === 'unknown') return outcome
      this.#opened(turn, leaseMs)
      const record = outcome.kind === 'active' ? await this.#comparable(outcome.record) : undefined
      return { ...outcome, record, nowMs: undefined }
    },

    complete: async (operation) => {
      const turn = this.#endedTurn(operation)
      const expiresAtMs = (await this.#under.nowMs()) + operation.time * unitMs
      const ended: CompleteTurn = {
        ...turn,
        pod: `pod-${operation.count}:8000`,
        usage,
        expiry:
          operation.expiry === 'set'
            ? { kind: 'set', ttlSeconds: operation.time * unitSeconds, expiresAtMs }
            : { kind: operation.expiry },
      }
      const outcome = await this.#under.store.complete(ended)
      if (outcome.kind === 'gone') return outcome
      // A turn counts once. It may have been the last to hold a session past its deadline.
      const again = await this.#under.store.complete(ended)
      if (again.kind === 'completed') expect(again).toEqual(outcome)
      return this.#comparable(outcome.record)
    },

    abandon: (operation) => this.#under.store.abandon(this.#endedTurn(operation)),

    announce: async (operation) => {
      const { key: session } = this.#turn(operation)
      const begin = operation.count % 2 === 0 ? session.slice(0, 22) : ''
      const artefactId = `${begin}artefact-${this.#announced.length}`
      // Some are too large for the session's own record.
      const payload = `${artefactId}\n${operation.text}${'\n'.repeat(operation.digest * 300)}`
      await this.#under.store.announce({ artefactId, session, payload, graceMs: (operation.time - 1) * unitMs })
      const kv = { artefactId, payload, tokens: operation.time, bytes: operation.otherTime, turn: operation.count }
      this.#announced.push({ session, kv })
      this.#owed.add(artefactId)
    },

    commit: async (operation) => {
      const announced = this.#announced.at(-1 - operation.back)
      if (announced === undefined) return undefined
      const { session: key, kv } = announced
      this.#owed.add(kv.artefactId)
      const commit = () => this.#under.store.commitKv({ key, kv })
      const isStored = await commit()
      if (isStored) expect(await commit()).toBe(true)
      return isStored
    },

    note: (operation) =>
      this.#under.store.setKvStatus({ key: this.#turn(operation).key, status: `note-${operation.count}` }),

    drop: async (operation) => {
      const announced = this.#announced.at(-1 - operation.back)
      if (announced === undefined) return
      const { session: key, kv } = announced
      await this.#under.store.dropKv({ key, artefactId: kv.artefactId, reason: 'damaged' })
    },

    get: async (operation) => this.#comparable(await this.#under.store.get(this.#turn(operation))),

    list: async (operation) => {
      const records = await this.#list(this.#turn(operation).tenant, operation.count)
      records.sort((a, b) => (a.key < b.key ? -1 : 1))
      return Promise.all(records.map((record) => this.#comparable(record)))
    },

    setTtl: async (operation) => {
      const ttlSeconds = operation.time * unitSeconds
      return this.#comparable(await this.#under.store.setTtl({ ...this.#turn(operation), ttlSeconds }))
    },

    remove: async (operation) => {
      const turn = this.#turn(operation)
      const isRemoved = await this.#under.store.remove(turn)
      expect(await this.#under.store.get(turn)).toBeUndefined()
      return isRemoved
    },

    expireDue: () => this.#under.store.expireDue(100),

    evict: () => this.#under.store.evict(100),

    dropArtefacts: (operation) => {
      const some = this.#announced.slice(-1 - operation.back).map(({ kv }) => kv.artefactId)
      return this.#under.store.dropArtefacts({ artefactIds: [...some, 'unknown-artefact'], reason: 'stale' })
    },

    claim: async (operation) => {
      const claimed = [...(await this.#under.store.claim({ limit: 1000, leaseMs: operation.time * unitMs }))]
      claimed.sort((a, b) => (a.id < b.id ? -1 : 1))
      this.#claimed.push(...claimed)
      // Each store names claims in its own way.
      return claimed.map(({ claim: _claim, ...removal }) => removal)
    },

    ack: async (operation) => {
      const claimed = this.#claimed.at(-1 - operation.back)
      if (claimed === undefined) return
      await this.#under.store.ack([claimed])
      this.#owed.delete(claimed.payload?.split('\n')[0] ?? '')
    },

    retryLater: async (operation) => {
      const claimed = this.#claimed.at(-1 - operation.back)
      if (claimed !== undefined) await this.#under.store.retryLater(claimed, operation.time * unitMs)
    },

    counts: async () => {
      const { ended } = await this.#under.store.expireDue(100)
      const records = (await Promise.all(tenants.map((tenant) => this.#list(tenant, 100)))).flat()
      const counts = await this.#under.store.counts()
      expect(counts.sessions).toBe(records.length)
      const kvBytes = records.reduce((sum, { kv }) => sum + (kv?.bytes ?? 0), 0)
      expect((await this.#under.store.sizes()).kvBytes).toBe(kvBytes)
      return { ...counts, ended, kvBytes }
    },

    advance: async (operation) => {
      this.#nowMs += operation.time * unitMs
      await this.#under.advance(operation.time * unitMs)
    },
  }

  /** All sessions of a tenant, page by page. */
  async #list(tenant: TenantKey, limit: number): Promise<SessionRecord[]> {
    const records: SessionRecord[] = []
    for (let more = true; more; ) {
      const page = await this.#under.store.list({ tenant, limit, after: records.at(-1)?.key })
      expect(page.records.length).toBeLessThanOrEqual(limit)
      records.push(...page.records)
      more = page.hasMore
      expect(more && page.records.length === 0).toBe(false)
    }
    const created = records.map(({ createdAtMs }) => createdAtMs)
    expect(created).toEqual([...created].sort((a, b) => b - a))
    return records
  }

  #opened({ key, tenant, turnId }: Turn, leaseMs: number): void {
    this.#open.push({ key, tenant, turnId, untilMs: this.#nowMs + leaseMs })
  }

  /** Takes an open turn, or else any one: it may be unknown, over, or another tenant's. */
  #endedTurn(operation: StoreOperation): Turn {
    const open = operation.isOfOpenTurn ? this.#open.at(-1 - operation.back) : undefined
    const { key, tenant, turnId } = open ?? this.#turn(operation)
    this.#open = this.#open.filter((turn) => turn.key !== key || turn.turnId !== turnId)
    return { key, tenant, turnId }
  }

  #turn(operation: StoreOperation): Turn {
    return {
      key: sessionKey(`session-${operation.session}`),
      tenant: tenants[operation.tenant] ?? tenants[0],
      turnId: `turn-${operation.turn}`,
    }
  }

  #newSession(operation: StoreOperation): NewSession {
    return {
      ...this.#turn(operation),
      sealedId: `sealed${operation.text}`,
      model: `model${operation.text}`,
      ttlSeconds: operation.time * unitSeconds,
      pod: operation.count === 1 ? undefined : `pod-${operation.count}:8000`,
      leaseMs: operation.otherTime * unitMs,
      retryOf:
        operation.retry === 'none'
          ? undefined
          : {
              // A digest covers the tenant.
              digest: `digest-${operation.tenant}-${operation.digest}`,
              bodyDigest: `body-${operation.body}`,
              rememberMs: operation.count * 2 * unitMs,
              use: operation.retry,
            },
    }
  }

  /** The record with its times as whole units from now. */
  async #comparable<T extends Pick<SessionRecord, 'createdAtMs' | 'expiresAtMs'>>(
    record: T | undefined,
  ): Promise<T | undefined> {
    if (record === undefined) return undefined
    const nowMs = await this.#under.nowMs()
    const units = (atMs: number): number => Math.round((atMs - nowMs) / unitMs) + 0
    return { ...record, createdAtMs: units(record.createdAtMs), expiresAtMs: units(record.expiresAtMs) }
  }
}
