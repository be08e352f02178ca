import type { SessionKey } from '../../sessions/session-record.ts'

/** How long after its lease the end of a turn may be reported: Envoy repeats it for a minute, to any gateway. */
export const lateEndMs = 60_000

/** What lies in a slot, as the last turn or sweep left it. */
export interface SlotContent {
  /** The stored artefact of the same content. Default: none is stored. */
  readonly artefactId?: string | undefined
  /** When the life of the session began that left it. Default: no session did. */
  readonly createdAtMs?: number | undefined
  /** Tokens whose KV is there; 0: the slot was erased. */
  readonly tokens: number
  /** What the engine reported of the slot at that moment. Another mark later means that something ran there since. */
  readonly mark: string
}

/** One slot as its engine just reported it. */
export interface ReportedSlot {
  readonly id: number
  readonly idle: boolean
  /** The last completion that ran there. Default: none, or the engine does not tell. */
  readonly task?: number | undefined
}

/** A slot, and the turn (or sweep) that holds it. */
export interface SlotTurn {
  readonly pod: string
  readonly slot: number
  readonly turnId: string
}

export interface ClaimSlot {
  readonly pod: string
  readonly session: SessionKey
  readonly turnId: string
  readonly leaseMs: number
  /** A slot with this content is preferred. */
  readonly artefactId: string | undefined
  /**
   * The turn computes most of its prompt. Of the slots of other sessions it takes the last one, and long turns hold at
   * most all slots but one, where there are more. Default: false.
   */
  readonly isLong?: boolean
  /** The turn can wait for another turn of its session, or a sweep. For a save of its session it always waits. */
  readonly mayWait: boolean
  /** All slots of the pod. */
  readonly slots: readonly ReportedSlot[]
}

export type ClaimOutcome =
  /** `content`: what the session left there; undefined: unknown, or another session's. */
  | { readonly kind: 'claimed'; readonly slot: number; readonly content?: SlotContent | undefined }
  /** A turn of the session has run but is not saved; or one, or a sweep, holds a slot while there is no other. */
  | { readonly kind: 'wait' }
  /** Every slot is busy or held, or is kept for hits. */
  | { readonly kind: 'no-room' }

/** One slot for removals and sweeps. */
export interface SlotEntry {
  readonly slot: number
  /** Whose KV may lie there. */
  readonly owner?: SessionKey | undefined
  /** Undefined: unknown, since a turn that claimed the slot has not been saved. */
  readonly content?: SlotContent | undefined
  /** A turn or a sweep holds the slot, or the end of a turn that held it may still be reported. */
  readonly inUse: boolean
  /** The session of that turn, or of one whose lease ran out. */
  readonly user?: SessionKey | undefined
}

/**
 * Who uses which slot of which engine, shared by all gateway processes. A slot is held by one turn at a time, while its
 * lease is renewed. Every method but `onRelease` is atomic, takes time from the ledger's own clock, and is one round trip.
 * A slot that a lost ledger does not know is erased by the next sweep, or overwritten by the turn that claims it.
 * @throws from every method but `onRelease` when the ledger cannot be reached.
 */
export interface SlotLedger {
  /**
   * Takes an idle slot that nobody holds: one of the session, best with `artefactId`; else one without an owner; else
   * the least recently claimed one; for a long turn the last one, which engines fill last and hits pass. Its content is
   * unknown until it is released with content. First of all, a turn that may not wait takes the slot of a turn of its
   * session that has run and whose end nobody has reported.
   */
  claim(request: ClaimSlot): Promise<ClaimOutcome>
  /**
   * Extends leases by `leaseMs` from now. Says of each turn whether it holds its slot: also if its lease ran out and
   * nobody took the slot since, never after a release. `saving`: turns of the session may wait for the release.
   */
  renew(
    turns: readonly SlotTurn[],
    options: { readonly leaseMs: number; readonly saving?: boolean },
  ): Promise<readonly boolean[]>
  /** Ends the lease, if the turn has it. With `content`, its session owns the slot then; after a sweep, nobody. */
  release(turn: SlotTurn & { readonly content?: SlotContent | undefined }): Promise<void>
  /** Calls the one listener with the pod of each released slot; of other processes by messages, which may be lost. */
  onRelease(released: (pod: string) => void): void
  /** Every slot of the pod that was ever claimed or erased. */
  list(pod: string): Promise<readonly SlotEntry[]>
  /** Takes a slot to sweep, remove or save what has no claim. Resolves to what was known; undefined: it is held. */
  seize(
    turn: SlotTurn & { readonly leaseMs: number; readonly session?: SessionKey },
  ): Promise<Pick<SlotEntry, 'owner' | 'content'> | undefined>
}
