import type { ClaimedRemoval, Removal } from '../../../src/sessions/removal-queue.ts'
import type { SessionKey, StoredKv } from '../../../src/sessions/session-record.ts'

interface ModelRemoval {
  readonly session: SessionKey
  readonly kind: Removal['kind']
  artefact: StoredKv | undefined
  dueMs: number
  attempt: number
  claim: string | undefined
  again: boolean
}

const unclaimed = { attempt: 0, claim: undefined, again: false }

/** What a removal queue must do: a session's removal, or an artefact's, waits in it until it is settled. */
export class RemovalModel {
  readonly #removals = new Map<string, ModelRemoval>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#removals.size
  }

  queueArtefact(session: SessionKey, artefact: StoredKv, dueMs: number): void {
    const { attempt, claim } = this.#ofArtefact(artefact.artefactId) ?? unclaimed
    const removal = { session, kind: 'artefact', artefact, dueMs, attempt, claim, again: false } as const
    this.#removals.set(`a:${artefact.artefactId}`, removal)
  }

  queueSession(session: SessionKey, artefact: StoredKv | undefined): void {
    const known = this.#ofSession(session)
    if (known === undefined) {
      const dueMs = this.#nowMs()
      this.#removals.set(`s:${session}`, { session, kind: 'session', artefact, dueMs, ...unclaimed })
      return
    }
    if (artefact !== undefined) {
      if (known.artefact !== undefined) this.queueArtefact(session, known.artefact, this.#nowMs())
      known.artefact = artefact
    }
    if (known.attempt > 0) known.again = true
    else known.dueMs = this.#nowMs()
  }

  /** The session lives again: of its removal only the artefact is left. */
  narrowSession(session: SessionKey): void {
    const removal = this.#ofSession(session)
    this.#removals.delete(`s:${session}`)
    if (removal?.artefact !== undefined) this.queueArtefact(session, removal.artefact, this.#nowMs())
  }

  /** Whether the artefact waits, and its removal has not begun. */
  isWaiting(artefactId: string): boolean {
    return this.#ofArtefact(artefactId)?.attempt === 0
  }

  namesSession(session: SessionKey): boolean {
    return this.#ofSession(session) !== undefined
  }

  /** Whether the removal of a session carries the artefact. */
  isCarried(artefactId: string): boolean {
    return [...this.#removals.values()].some(
      ({ kind, artefact }) => kind === 'session' && artefact?.artefactId === artefactId,
    )
  }

  /** A commit makes the artefact its session's. */
  takeArtefact(artefactId: string): void {
    this.#removals.delete(`a:${artefactId}`)
  }

  due(): readonly string[] {
    return [...this.#removals].filter(([, { dueMs }]) => dueMs <= this.#nowMs()).map(([id]) => id)
  }

  /** `claim` is the name that the store gave to it. */
  claim({ id, claim }: ClaimedRemoval, leaseMs: number): Removal | undefined {
    const removal = this.#removals.get(id)
    if (removal === undefined) return undefined
    removal.attempt += 1
    removal.claim = claim
    removal.again = false
    removal.dueMs = this.#nowMs() + leaseMs
    const { kind, session, artefact, attempt } = removal
    return { id, kind, session, payload: artefact?.payload, attempt, claim }
  }

  /** The artefact that is gone with it, if the removal is struck off. */
  ack({ id, claim }: ClaimedRemoval): string | undefined {
    const removal = this.#removals.get(id)
    if (removal?.claim !== claim) return undefined
    if (removal.again) {
      removal.again = false
      removal.attempt = 0
      removal.claim = undefined
      removal.dueMs = this.#nowMs()
      return undefined
    }
    this.#removals.delete(id)
    return removal.artefact?.artefactId
  }

  retryLater({ id, claim }: ClaimedRemoval, delayMs: number): void {
    const removal = this.#removals.get(id)
    if (removal?.claim === claim) removal.dueMs = this.#nowMs() + delayMs
  }

  knows(artefactId: string): boolean {
    return [...this.#removals.values()].some(({ artefact }) => artefact?.artefactId === artefactId)
  }

  #ofArtefact(artefactId: string): ModelRemoval | undefined {
    return this.#removals.get(`a:${artefactId}`)
  }

  #ofSession(session: SessionKey): ModelRemoval | undefined {
    return this.#removals.get(`s:${session}`)
  }
}
