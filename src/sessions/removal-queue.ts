import type { SessionKey } from './session-record.ts'

/** KV that has to go. It is written down before anything is removed and struck off when all of it is gone: at least once, and idempotent. */
export interface Removal {
  /** `a:<artefactId>` or `s:<session key>`. */
  readonly id: string
  readonly session: SessionKey
  /**
   * `artefact`: one stored artefact, superseded or never committed; the session itself may live on.
   * `session`: the session has ended: its artefact, if any, and whatever of it lies in pods.
   */
  readonly kind: 'artefact' | 'session'
  /** The artefact's payload; undefined for a session that never stored any. */
  readonly payload: string | undefined
  /** How often the removal was claimed, this time included. */
  readonly attempt: number
  /** Names this claim of it, and no other. */
  readonly claim: string
}

/** A removal that was claimed, for whoever claimed it. */
export type ClaimedRemoval = Pick<Removal, 'id' | 'claim'>

/** What a step of expiry came to. */
export interface Expired {
  /** Sessions that it ended. */
  readonly ended: number
  /** Whether others may be due as well: the step stopped at its limit. */
  readonly hasMore: boolean
}

/**
 * The work list of the reaper. Lives in the same store as the sessions, since ending a session and queueing its removal is one step.
 * Entries survive a restart of the gateway as far as the store does.
 *
 * @throws StoreUnavailableError as SessionStore does.
 */
export interface RemovalQueue {
  /**
   * Writes an artefact down before an engine is asked to store it, due after `graceMs`: it is removed unless `commitKv` takes it off before.
   * So a gateway that dies in between leaves nothing behind.
   */
  announce(artefact: {
    readonly artefactId: string
    readonly session: SessionKey
    readonly payload: string
    readonly graceMs: number
  }): Promise<void>
  /** Ends up to `limit` sessions whose deadline has passed and that no turn holds. */
  expireDue(limit: number): Promise<Expired>
  /**
   * Brings the stored KV down to the threshold of its limit, and (memory store) the sessions to the memory they may take, in up to `limit`
   * steps; resolves to how many it took. Nothing that a turn uses goes.
   */
  evict(limit: number): Promise<number>
  /** Up to `limit` due removals. They come again after `leaseMs` unless settled, so a reaper that dies loses none; end the work on one before that. */
  claim(options: { readonly limit: number; readonly leaseMs: number }): Promise<readonly Removal[]>
  /**
   * Strikes removals off. One that was queued once more since it was claimed stays, and is due at once. One that somebody else has claimed since, or that
   * was taken off and is another one now (its session lived again, and has ended again), is none of the caller's.
   */
  settle(removals: readonly ClaimedRemoval[]): Promise<void>
  /** Tries a removal again after `delayMs`, if it still is the caller's. */
  postpone(removal: ClaimedRemoval, delayMs: number): Promise<void>
  /** Which of these artefacts a session or the queue still knows; the others are orphans (their store was lost). */
  knownArtefacts(artefactIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Drops these artefacts from whichever sessions have them, as `dropKv` does; resolves to how many a session had. */
  dropArtefacts(drop: { readonly artefactIds: readonly string[]; readonly reason: string }): Promise<number>
  /** Removals that wait, due or not, and sessions that live. For metrics. */
  counts(): Promise<{ readonly removals: number; readonly sessions: number }>
  /** Bytes of stored KV, where a limit for it is set, and about what sessions take of this process's memory, where they lie there. For metrics. */
  sizes(): Promise<{ readonly kvBytes: number | undefined; readonly sessionBytes: number | undefined }>
}
