import type { SessionForTurn, SessionKey, SessionRecord, StoredKv, TenantKey, TokenTotals } from '../session-record.ts'
import { sessionBytes } from './session-bytes.ts'
import { type SessionRows, sessionColumns } from './session-rows.ts'

/** A session that a table does not know yet: without turns, and without stored KV. */
export interface NewLiveSession {
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly sealedId: string
  readonly model: string
  readonly createdAtMs: number
  readonly state: 'creating' | 'active'
  readonly expiresAtMs: number
  readonly ttlSeconds: number
  readonly pod: string | undefined
  /** The retry key that names it, while it is being created. */
  readonly retryDigest: string | undefined
}

/** A session that lives, as its row has it: for one step, since the slot may be another session's afterwards. */
export class LiveSession {
  readonly slot: number
  readonly #rows: SessionRows
  readonly #page: Float64Array
  readonly #place: number

  constructor(rows: SessionRows, slot: number) {
    this.slot = slot
    this.#rows = rows
    this.#page = rows.rows.pageOf(slot)
    this.#place = rows.rows.placeOf(slot)
  }

  get key(): SessionKey {
    return this.#rows.keyOf(this.slot)
  }

  get tenant(): TenantKey {
    return this.#text(sessionColumns.tenant) as TenantKey
  }

  get sealedId(): string {
    return this.#rows.sealedIdOf(this.slot)
  }

  get model(): string {
    return this.#text(sessionColumns.model) ?? ''
  }

  get createdAtMs(): number {
    return this.#number(sessionColumns.createdAtMs)
  }

  /** Its place in the tenant's list. */
  get sequence(): number {
    return this.#number(sessionColumns.sequence)
  }

  /** The number of its tenant. */
  get tenantNumber(): number {
    return this.#number(sessionColumns.tenant)
  }

  get state(): 'creating' | 'active' {
    return this.#number(sessionColumns.isActive) === 0 ? 'creating' : 'active'
  }

  set state(state: 'creating' | 'active') {
    this.#set(sessionColumns.isActive, state === 'active' ? 1 : 0)
  }

  get expiresAtMs(): number {
    return this.#number(sessionColumns.expiresAtMs)
  }

  set expiresAtMs(atMs: number) {
    this.#set(sessionColumns.expiresAtMs, atMs)
  }

  get ttlSeconds(): number {
    return this.#number(sessionColumns.ttlSeconds)
  }

  set ttlSeconds(seconds: number) {
    this.#set(sessionColumns.ttlSeconds, seconds)
  }

  get turns(): number {
    return this.#number(sessionColumns.turns)
  }

  set turns(count: number) {
    this.#set(sessionColumns.turns, count)
  }

  get tokens(): TokenTotals {
    return {
      prompt: this.#number(sessionColumns.promptTokens),
      output: this.#number(sessionColumns.outputTokens),
      cached: this.#number(sessionColumns.cachedTokens),
    }
  }

  set tokens({ prompt, output, cached }: TokenTotals) {
    this.#set(sessionColumns.promptTokens, prompt)
    this.#set(sessionColumns.outputTokens, output)
    this.#set(sessionColumns.cachedTokens, cached)
  }

  get pod(): string | undefined {
    return this.#text(sessionColumns.pod)
  }

  set pod(pod: string | undefined) {
    this.#rows.setText(this.slot, sessionColumns.pod, pod)
  }

  get kv(): StoredKv | undefined {
    return this.#rows.kvOf(this.slot)
  }

  /** To be set by the table, which has to know. */
  set kv(kv: StoredKv | undefined) {
    this.#rows.setKv(this.slot, kv)
    this.#set(sessionColumns.bytes, sessionBytes(this))
  }

  get kvNote(): string | undefined {
    return this.#text(sessionColumns.kvNote)
  }

  set kvNote(note: string | undefined) {
    this.#rows.setText(this.slot, sessionColumns.kvNote, note)
  }

  /** The retry key that names it, while it is being created. */
  get retryDigest(): string | undefined {
    return this.#rows.retryDigestOf(this.slot)
  }

  set retryDigest(digest: string | undefined) {
    this.#rows.setRetryDigest(this.slot, digest)
  }

  /** About what it takes of this process's memory. */
  get bytes(): number {
    return this.#number(sessionColumns.bytes)
  }

  /** Writes a session into a slot that was taken for it. */
  static begin(rows: SessionRows, session: NewLiveSession, sequence: number): LiveSession {
    const live = new LiveSession(rows, rows.take(session.key, session.sealedId))
    rows.setText(live.slot, sessionColumns.tenant, session.tenant)
    rows.setText(live.slot, sessionColumns.model, session.model)
    live.#set(sessionColumns.createdAtMs, session.createdAtMs)
    live.#set(sessionColumns.sequence, sequence)
    live.state = session.state
    live.expiresAtMs = session.expiresAtMs
    live.ttlSeconds = session.ttlSeconds
    live.turns = 0
    live.tokens = noTokens
    live.pod = session.pod
    live.kv = undefined
    live.kvNote = undefined
    live.retryDigest = session.retryDigest
    return live
  }

  #number(column: number): number {
    return this.#page[this.#place + column] ?? 0
  }

  #set(column: number, value: number): void {
    this.#page[this.#place + column] = value
  }

  #text(column: number): string | undefined {
    return this.#rows.texts.textOf(this.#number(column))
  }
}

const noTokens: TokenTotals = { prompt: 0, output: 0, cached: 0 }

/** What a turn has to know of the session as it is now. `key` is the session's own, which its row would have to spell. */
export const toSessionForTurn = (session: LiveSession, key: SessionKey): SessionForTurn => ({
  key,
  tenant: session.tenant,
  model: session.model,
  createdAtMs: session.createdAtMs,
  expiresAtMs: session.expiresAtMs,
  ttlSeconds: session.ttlSeconds,
  pod: session.pod,
  kv: session.kv,
  kvNote: session.kvNote,
})

/**
 * What the session is now; it goes on without this record. `key` is the session's own. Members are named one by one: V8 gives each object that a
 * spread makes of so many a hidden class of its own, which takes longer than all else here.
 */
export const toRecord = (session: LiveSession, key: SessionKey): SessionRecord => ({
  key,
  tenant: session.tenant,
  sealedId: session.sealedId,
  model: session.model,
  createdAtMs: session.createdAtMs,
  expiresAtMs: session.expiresAtMs,
  ttlSeconds: session.ttlSeconds,
  turns: session.turns,
  tokens: session.tokens,
  pod: session.pod,
  kv: session.kv,
  kvNote: session.kvNote,
})
