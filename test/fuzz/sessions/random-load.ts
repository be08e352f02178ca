import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { type SessionStore, StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import { artefactOf, newSession, sessionKey, tenantKey } from '../../contract/sessions/store-under-test.ts'

/** A turn that was begun and not ended, as whoever began it knows it. */
interface OpenTurn {
  readonly key: SessionKey
  readonly turnId: string
  readonly untilMs: number
  /** How often the session had been deleted by then. */
  readonly deletions: number
}

const keys = Array.from({ length: 5_000 }, (_, index) => sessionKey(`session-${index}`))
const models = Array.from({ length: 100 }, (_, index) => 'm'.repeat(1 + 20 * index))
const tenant = tenantKey('alice')
const leaseMs = 500
const largestKvBytes = 60_000

/** What users, engines and the reaper do to a store, at random, but the same in every run. No call waits for others. */
export class RandomLoad {
  readonly outcomes = { created: 0, refused: 0, completed: 0, lostInTurn: 0, stored: 0 }
  nowMs = Date.UTC(2026, 0, 1)
  readonly store: SessionStore & RemovalQueue
  readonly #turns: OpenTurn[] = []
  readonly #deletions = new Map<SessionKey, number>()
  #random = 20_260_101
  #serial = 0
  #artefacts = 0

  constructor(makeStore: (nowMs: () => number) => SessionStore & RemovalQueue) {
    this.store = makeStore(() => this.nowMs)
  }

  /** One operation, or what belongs together. */
  async step(): Promise<void> {
    this.#serial += 1
    if (this.#next() < 0.5) this.nowMs += 1
    const key = keys[this.#pick(keys.length)] ?? sessionKey('none')
    const what = this.#next()
    if (what < 0.3) return this.#create(key)
    if (what < 0.6) return this.#begin(key)
    if (what < 0.95) return this.#end()
    if (what < 0.98) return void (await this.store.get({ key, tenant }))
    if (what < 0.99) return this.#sweep()
    return this.#delete(key)
  }

  async #create(key: SessionKey): Promise<void> {
    const turn = this.#newTurn(key)
    const model = models[this.#pick(models.length)] ?? 'm'
    const ttlSeconds = 1 + this.#pick(60)
    try {
      const { kind } = await this.store.create(newSession({ ...turn, tenant, model, ttlSeconds, leaseMs }))
      if (kind === 'created') this.outcomes.created += 1
      this.#turns.push(turn)
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      this.outcomes.refused += 1
    }
  }

  async #begin(key: SessionKey): Promise<void> {
    const turn = this.#newTurn(key)
    const { kind } = await this.store.begin({ ...turn, tenant, leaseMs })
    if (kind === 'active') this.#turns.push(turn)
  }

  async #end(): Promise<void> {
    const turn = this.#takeTurn()
    if (turn === undefined) return
    if (this.#next() < 0.1) return this.store.abandon({ ...turn, tenant })
    const isHeld = turn.untilMs > this.nowMs && turn.deletions === this.#deletionsOf(turn.key)
    const usage = { prompt: 10, output: 1, cached: 5 }
    const { kind } = await this.store.complete({ ...turn, tenant, pod: 'pod:1', usage, expiry: { kind: 'keep' } })
    if (kind === 'completed') this.outcomes.completed += 1
    else if (isHeld) this.outcomes.lostInTurn += 1
    if (this.#next() < 0.7) await this.#keep(turn.key)
  }

  async #keep(key: SessionKey): Promise<void> {
    this.#artefacts += 1
    const artefact = { artefactId: artefactOf(`artefact-${this.#artefacts}`, key), payload: 'payload' }
    await this.store.announce({ ...artefact, session: key, graceMs: 60_000 })
    const bytes = 1 + this.#pick(largestKvBytes)
    const { createdAtMs = 0 } = (await this.store.get({ key, tenant })) ?? {}
    const kv = { ...artefact, tokens: 1, bytes, turn: this.#serial }
    const isStored = await this.store.commitKv({ key, tenant, createdAtMs, kv })
    if (isStored) this.outcomes.stored += 1
  }

  async #sweep(): Promise<void> {
    await this.store.expireDue(100)
    await this.store.evict(100)
    for (const removal of await this.store.claim({ limit: 100, leaseMs: 1_000 })) await this.store.ack([removal])
  }

  async #delete(key: SessionKey): Promise<void> {
    this.#deletions.set(key, this.#deletionsOf(key) + 1)
    await this.store.remove({ key, tenant })
  }

  #newTurn(key: SessionKey): OpenTurn {
    const untilMs = this.nowMs + leaseMs
    return { key, turnId: `turn-${this.#serial}`, untilMs, deletions: this.#deletionsOf(key) }
  }

  #takeTurn(): OpenTurn | undefined {
    const at = this.#pick(this.#turns.length)
    const turn = this.#turns[at]
    const last = this.#turns.pop()
    if (last !== undefined && at < this.#turns.length) this.#turns[at] = last
    return turn
  }

  #deletionsOf(key: SessionKey): number {
    return this.#deletions.get(key) ?? 0
  }

  #pick(count: number): number {
    return Math.floor(this.#next() * count)
  }

  /** From 0 to 1 (xorshift). */
  #next(): number {
    this.#random ^= this.#random << 13
    this.#random ^= this.#random >>> 17
    this.#random ^= this.#random << 5
    return (this.#random >>> 0) / 2 ** 32
  }
}
