import { DeadlineQueue, type Due } from '../../async/deadline-queue.ts'
import type { ClaimedRemoval, Removal, RemovalQueue } from '../removal-queue.ts'
import type { SessionKey, StoredKv } from '../session-record.ts'

/** An artefact by name, with what it takes to remove it. */
type NamedArtefact = Pick<StoredKv, 'artefactId' | 'payload'>

interface Entry extends Due<Entry>, Pick<Removal, 'id' | 'session' | 'kind'> {
  artefact: NamedArtefact | undefined
  /** How often it was claimed. */
  attempt: number
  /** The last claim's name. */
  claim: string | undefined
  /** Queued again since it was claimed. */
  isRequeued: boolean
}

/** The removal queue in memory. The caller passes the time. */
export class MemoryRemovals {
  readonly #entries = new Map<string, Entry>()
  readonly #due = new DeadlineQueue<Entry>()
  /** Which entry names an artefact. */
  readonly #artefacts = new Map<string, Entry>()
  #claims = 0

  get size(): number {
    return this.#entries.size
  }

  names(artefactId: string): boolean {
    return this.#artefacts.has(artefactId)
  }

  namesSession(session: SessionKey): boolean {
    return this.#entries.has(`s:${session}`)
  }

  announce(session: SessionKey, artefact: NamedArtefact, dueMs: number): void {
    const id = `a:${artefact.artefactId}`
    const entry = this.#entries.get(id) ?? this.#add(id, session, 'artefact')
    this.#carry(entry, artefact)
    entry.isRequeued = false
    this.#due.set(entry, dueMs)
  }

  /** Queues an artefact or changes its due time, unless the removal of its session carries it. */
  queueArtefact(session: SessionKey, artefact: NamedArtefact, dueMs: number): void {
    const known = this.#artefacts.get(artefact.artefactId)
    if (known === undefined || known.kind === 'artefact') this.announce(session, artefact, dueMs)
  }

  /** A claimed removal may have passed the pods already, so it becomes due again when it is acknowledged. */
  queueSession(session: SessionKey, artefact: NamedArtefact | undefined, nowMs: number): void {
    const id = `s:${session}`
    const entry = this.#entries.get(id) ?? this.#add(id, session, 'session')
    const carried = entry.artefact
    if (artefact !== undefined && artefact.artefactId !== carried?.artefactId) {
      this.#carry(entry, artefact)
      if (carried !== undefined) this.queueArtefact(session, carried, nowMs)
    }
    if (entry.attempt > 0) entry.isRequeued = true
    else this.#due.set(entry, nowMs)
  }

  /** Whether an announced artefact is queued and unclaimed; else it may be removed already. */
  canCommit(artefactId: string): boolean {
    return this.#entries.get(`a:${artefactId}`)?.attempt === 0
  }

  /** Removes an announced artefact from the queue. */
  commit(artefactId: string): void {
    this.#drop(this.#entries.get(`a:${artefactId}`))
  }

  /** Keeps only the artefact of a session's removal: the session was revived, and its KV in pods is in use again. */
  narrowSession(session: SessionKey, nowMs: number): void {
    const entry = this.#entries.get(`s:${session}`)
    this.#drop(entry)
    if (entry?.artefact !== undefined) this.queueArtefact(session, entry.artefact, nowMs)
  }

  claim({ limit, leaseMs }: Parameters<RemovalQueue['claim']>[0], nowMs: number): readonly Removal[] {
    const claimed: Removal[] = []
    for (let entry = this.#due.firstDue(nowMs); entry !== undefined && claimed.length < limit; ) {
      this.#claims += 1
      Object.assign(entry, { isRequeued: false, attempt: entry.attempt + 1, claim: String(this.#claims) })
      const { id, kind, session, artefact, attempt } = entry
      claimed.push({ id, kind, session, payload: artefact?.payload, attempt, claim: String(this.#claims) })
      this.#due.set(entry, nowMs + leaseMs)
      entry = this.#due.firstDue(nowMs)
    }
    return claimed
  }

  ack({ id, claim }: ClaimedRemoval, nowMs: number): void {
    const entry = this.#entries.get(id)
    if (entry?.claim !== claim) return
    if (entry.isRequeued) {
      Object.assign(entry, { isRequeued: false, attempt: 0, claim: undefined })
      this.#due.set(entry, nowMs)
    } else this.#drop(entry)
  }

  retryLater({ id, claim }: ClaimedRemoval, dueMs: number): void {
    const entry = this.#entries.get(id)
    if (entry?.claim === claim) this.#due.set(entry, dueMs)
  }

  #add(id: string, session: SessionKey, kind: Removal['kind']): Entry {
    const entry: Entry = {
      id,
      session,
      kind,
      artefact: undefined,
      attempt: 0,
      claim: undefined,
      isRequeued: false,
      dueMs: 0,
      entry: undefined,
    }
    this.#entries.set(id, entry)
    return entry
  }

  #carry(entry: Entry, artefact: NamedArtefact): void {
    if (entry.artefact !== undefined) this.#artefacts.delete(entry.artefact.artefactId)
    entry.artefact = { artefactId: artefact.artefactId, payload: artefact.payload }
    this.#artefacts.set(artefact.artefactId, entry)
  }

  #drop(entry: Entry | undefined): void {
    if (entry === undefined) return
    if (entry.artefact !== undefined) this.#artefacts.delete(entry.artefact.artefactId)
    this.#entries.delete(entry.id)
    this.#due.delete(entry)
  }
}
