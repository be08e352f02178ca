import type { SessionKey } from '../../sessions/session-record.ts'

/** What lies in a slot, as far as the gateways know. */
export type SlotContent =
  /** Nothing of any session. */
  | { readonly kind: 'clean' }
  /** Perhaps something of the slot's owner or of those before it: it must be wiped or overwritten before anybody relies on it. */
  | { readonly kind: 'unknown' }
  /** KV of the owner. */
  | {
      readonly kind: 'holds'
      /** The stored artefact with the same content; undefined when none was stored. */
      readonly artefactId: string | undefined
      readonly tokens: number
      /** What the engine reported of the slot when this was written; another mark later means that something ran there since. */
      readonly mark: string
    }

/** One slot as its engine just reported it. */
export interface ReportedSlot {
  readonly id: number
  readonly idle: boolean
}

/** Names a slot and the turn that acts on it. */
export interface SlotTurn {
  readonly pod: string
  readonly slot: number
  readonly turnId: string
}

export interface ClaimSlot {
  readonly pod: string
  readonly session: SessionKey
  readonly turnId: string
  /** How long the turn may hold the slot; a gateway that dies lets it go by that. */
  readonly leaseMs: number
  /** How long a turn that has to fill the slot may take, before another turn of the session does it instead. */
  readonly loadMs: number
  readonly slots: readonly ReportedSlot[]
}

export type ClaimOutcome =
  | {
      readonly kind: 'claimed'
      readonly slot: number
      /**
       * `load`: this turn alone fills the slot now, then calls `settle`. `wait`: another turn of the session does; claim again.
       * `check`: `content` is settled, and has to be compared with what the engine reports.
       */
      readonly role: 'load' | 'wait' | 'check'
      readonly content: SlotContent
      /** Other turns of the session that hold the slot. */
      readonly others: number
      /** Changes whenever content or loader do; for `reload`. */
      readonly revision: number
    }
  /** Every slot is busy, held by another session, or closed. */
  | { readonly kind: 'no-room' }

/**
 * The turns' side of the ledger. A slot that a session owns is shared by the session's turns and by nobody else while one of them holds a
 * lease. Leases and loads that are not ended in time end by themselves.
 */
export interface SlotTurns {
  /**
   * Takes a slot for a turn: the one the session owns on the pod, if it is idle or in use by the session itself; else an idle one without
   * owner; else the idle one that was used least recently and that no turn holds. Repeating it with the same turn finds the same slot.
   */
  claim(request: ClaimSlot): Promise<ClaimOutcome>
  /** Makes the turn the loader of a slot whose content turned out to be stale. `false`: `revision` is no longer current, claim again. */
  reload(turn: SlotTurn & { readonly revision: number; readonly loadMs: number }): Promise<boolean>
  /**
   * The loader tells what the slot holds now. `closeMs`: nobody may claim the slot for so long, because a call to the engine is still
   * under way there. `false`: the turn is not the loader any more, and must not use the slot.
   */
  settle(turn: SlotTurn & { readonly content: SlotContent; readonly closeMs: number }): Promise<boolean>
  /**
   * Asks whether the turn's KV should be saved now. `superseded`: another turn of the session holds the slot too and will do it; the lease
   * is gone. `lost`: the lease had run out or was never there. `held`: it lasts `leaseMs` from now.
   */
  beginSave(
    turn: SlotTurn & { readonly session: SessionKey; readonly leaseMs: number },
  ): Promise<'held' | 'superseded' | 'lost'>
  /**
   * Lets the turn's lease go, with what the slot holds now if that is known. The turn that closed the slot opens it so, with or without a
   * lease; while it is closed, nobody else's word counts. A loader that lets go without having settled leaves unknown content. Resolves to
   * how many turns still hold the slot.
   */
  release(turn: SlotTurn & { readonly content?: SlotContent }): Promise<number>
}

/** One slot for those who clean up. */
export interface SlotEntry {
  readonly pod: string
  readonly slot: number
  /** A turn holds or fills it, or it is closed. */
  readonly inUse: boolean
  /** It may hold KV that does not belong to its owner, and no turn is about to overwrite it. */
  readonly needsWipe: boolean
  readonly kind: SlotContent['kind']
  /** The mark of its content; undefined unless `kind` is `holds`. */
  readonly mark: string | undefined
}

/** The cleaners' side of the ledger. */
export interface SlotUpkeep {
  /** Every slot in which KV of the session may lie, on any pod. */
  slotsOf(session: SessionKey): Promise<readonly { readonly pod: string; readonly slot: number }[]>
  /** Notes that KV of the session may lie in a slot that it did not claim. The slot needs a wipe then. */
  addTrace(trace: { readonly pod: string; readonly slot: number; readonly session: SessionKey }): Promise<void>
  /** Every slot ever claimed and not forgotten. One that is missing here was never claimed, or the ledger was lost since. */
  list(): Promise<readonly SlotEntry[]>
  /**
   * Takes a slot in order to wipe it, so that no turn uses it meanwhile; end with `wiped`, or `release` if that failed.
   * With `session`: only if KV of that session may lie there. Without: only if it is not listed or needs a wipe.
   */
  seize(
    turn: SlotTurn & { readonly session: SessionKey | undefined; readonly leaseMs: number },
  ): Promise<'seized' | 'in-use' | 'nothing-to-do'>
  /**
   * The seized slot is empty: nothing of anybody lies there, and it has no owner any more, unless a turn of the owner waits for it.
   * `false`: it was not seized by this turn.
   */
  wiped(turn: SlotTurn): Promise<boolean>
  /** Drops everything about a pod that is gone. */
  forgetPod(pod: string): Promise<void>
}

/**
 * Who uses which slot of which engine, shared by all gateway processes. Every method is atomic, decides time by the ledger's own clock and
 * takes one round trip. Losing the ledger loses no correctness: a slot it does not know is wiped before it is used.
 *
 * @throws from every method when the ledger cannot be reached.
 */
export interface SlotLedger extends SlotTurns, SlotUpkeep {}
