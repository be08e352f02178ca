import { hashOfId, SlotMap } from '../../collections/slot-map.ts'
import type { ClaimedRemoval, Removal, RemovalQueue } from '../removal-queue.ts'
import type { SessionKey } from '../session-record.ts'
import { DeadlineHeap } from './deadline-heap.ts'

/** An artefact by name, with what it takes to remove it. */
export interface NamedArtefact {
  readonly artefactId: string
  readonly payload: string
}

interface Entry {
  readonly kind: Removal['kind']
  readonly session: SessionKey
  artefact: NamedArtefact | undefined
  dueMs: number
  /** How often it was claimed. */
  attempt: number
  /** The last claim's name. */
  claim: string | undefined
  /** Queued once more since it was claimed. */
  again: boolean
}

/** KV that has to go, in memory. Times come from the caller. */
export class MemoryRemovals {
  readonly #entries = new SlotMap<string, Entry>({ hashOf: hashOfId })
  readonly #deadlines = new DeadlineHeap<string>()
  /** Artefacts that an entry names. */
  readonly #artefacts = new SlotMap<string, string>({ hashOf: hashOfId })
  #claims = 0

  get size(): number {
    return this.#entries.size
  }

  names(artefactId: string): boolean {
    return this.#artefacts.has(artefactId)
  }

  announce(session: SessionKey, artefact: NamedArtefact, dueMs: number): void {
    const id = `a:${artefact.artefactId}`
    const { attempt = 0, claim } = this.#entries.get(id) ?? {}
    this.#put(id, { kind: 'artefact', session, artefact, dueMs, attempt, claim, again: false })
  }

  /** Queues an artefact, or sets anew when it is due. */
  queueArtefact(session: SessionKey, artefact: NamedArtefact, dueMs: number): void {
    const id = `a:${artefact.artefactId}`
    // The removal of its session may carry it already.
    if ((this.#artefacts.get(artefact.artefactId) ?? id) === id) this.announce(session, artefact, dueMs)
  }

  /** A removal that was claimed may have passed the pods already, so it is marked to come once more when it is settled. */
  queueSession(session: SessionKey, artefact: NamedArtefact | undefined, nowMs: number): void {
    const id = `s:${session}`
    const known = this.#entries.get(id)
    if (known === undefined) {
      this.#put(id, { kind: 'session', session, artefact, dueMs: nowMs, attempt: 0, claim: undefined, again: false })
      return
    }
    if (artefact !== undefined) {
      const carried = known.artefact
      this.#put(id, { ...known, artefact })
      if (carried !== undefined && carried.artefactId !== artefact.artefactId) {
        this.queueArtefact(session, carried, nowMs)
      }
    }
    if (known.attempt > 0) this.#change(id, { again: true })
    else this.#change(id, { dueMs: nowMs })
  }

  /** `false`: an announced artefact is not here, or was claimed, so that it may be gone already. */
  canCommit(artefactId: string): boolean {
    return this.#entries.get(`a:${artefactId}`)?.attempt === 0
  }

  /** Takes an announced artefact off for good. */
  commit(artefactId: string): void {
    this.#drop(`a:${artefactId}`)
  }

  /** The session lives again, and what lies in pods is its own: of its earlier life only the artefact has to go. */
  narrowSession(session: SessionKey, nowMs: number): void {
    const entry = this.#entries.get(`s:${session}`)
    if (entry === undefined) return
    this.#drop(`s:${session}`)
    if (entry.artefact !== undefined) this.queueArtefact(session, entry.artefact, nowMs)
  }

  claim({ limit, leaseMs }: Parameters<RemovalQueue['claim']>[0], nowMs: number): readonly Removal[] {
    const claimed: Removal[] = []
    while (claimed.length < limit) {
      const id = this.#deadlines.takeDue(nowMs)
      if (id === undefined) break
      const entry = this.#change(id, { dueMs: nowMs + leaseMs, again: false })
      if (entry === undefined) continue
      entry.attempt += 1
      this.#claims += 1
      const claim = String(this.#claims)
      entry.claim = claim
      const { kind, session, artefact, attempt } = entry
      claimed.push({ id, kind, session, payload: artefact?.payload, attempt, claim })
    }
    return claimed
  }

  settle({ id, claim }: ClaimedRemoval, nowMs: number): void {
    const entry = this.#entries.get(id)
    if (entry?.claim !== claim) return
    if (entry.again) this.#change(id, { again: false, attempt: 0, claim: undefined, dueMs: nowMs })
    else this.#drop(id)
  }

  postpone({ id, claim }: ClaimedRemoval, dueMs: number): void {
    if (this.#entries.get(id)?.claim === claim) this.#change(id, { dueMs })
  }

  #put(id: string, entry: Entry): void {
    this.#drop(id)
    this.#entries.set(id, entry)
    this.#deadlines.set(id, entry.dueMs)
    if (entry.artefact !== undefined) this.#artefacts.set(entry.artefact.artefactId, id)
  }

  #drop(id: string): void {
    const artefactId = this.#entries.get(id)?.artefact?.artefactId
    if (artefactId !== undefined) this.#artefacts.delete(artefactId)
    this.#entries.delete(id)
    this.#deadlines.delete(id)
  }

  #change(id: string, change: Partial<Pick<Entry, 'dueMs' | 'again' | 'attempt' | 'claim'>>): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    Object.assign(entry, change)
    this.#deadlines.set(id, entry.dueMs)
    return entry
  }
}
