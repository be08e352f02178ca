import type { SessionKey } from './session-record.ts'

/** KV to remove: queued before anything is removed, acknowledged when all of it is gone; at least once, idempotent. */
export interface Removal {
  /** `a:<artefactId>` or `s:<session key>`. */
  readonly id: string
  readonly session: SessionKey
  /** `artefact`: superseded, or never committed. `session`: one that ended: its artefact, if any, and KV in pods. */
  readonly kind: 'artefact' | 'session'
  /** The artefact's payload; undefined for a session that never stored any. */
  readonly payload: string | undefined
  /** How often the removal was claimed, this time included. */
  readonly attempt: number
  /** Identifies this claim of the removal. */
  readonly claim: string
}

/** A claimed removal, as its claimant names it. */
export type ClaimedRemoval = Pick<Removal, 'id' | 'session' | 'claim'>

/**
 * Work list of the reaper, in the same store as the sessions: ending a session and queueing its removal is one step.
 * Entries survive a restart of the gateway as far as the store does.
 * @throws StoreUnavailableError as SessionStore does.
 */
export interface RemovalQueue {
  /** Queues an artefact before it is stored, due after `graceMs` unless committed: who dies leaves nothing behind. */
  announce(artefact: {
    readonly artefactId: string
    readonly session: SessionKey
    readonly payload: string
    readonly graceMs: number
  }): Promise<void>
  /**
   * Ends due sessions that no turn holds, up to `limit` in each part of the store that no other gateway works on. Resolves
   * to how many; `hasMore`: others may be due as well.
   */
  expireDue(limit: number): Promise<{ readonly ended: number; readonly hasMore: boolean }>
  /**
   * Brings the stored KV down to the threshold of its limit, and (memory store) the sessions down to their memory
   * limit, in up to `limit` steps; resolves to the number of steps. Nothing that a turn uses is evicted.
   */
  evict(limit: number): Promise<number>
  /**
   * Sets right what is counted of tenants' stored KV, where it has a limit, a step of some `limit` sessions at a time.
   * Resolves to whether there is more to do before all of it was looked at once, as it must be before the first turn.
   */
  recount(limit: number): Promise<boolean>
  /** Up to `limit` due removals, of the parts of the store that no other gateway works on. Unless acknowledged they are due again after `leaseMs`: finish the work by then. */
  claim(options: { readonly limit: number; readonly leaseMs: number }): Promise<readonly Removal[]>
  /** Acknowledges removals. One requeued since the claim is due again; one claimed by another process is ignored. */
  ack(removals: readonly ClaimedRemoval[]): Promise<void>
  /** Makes a removal due again after `delayMs`; one claimed by another process is ignored. */
  retryLater(removal: ClaimedRemoval, delayMs: number): Promise<void>
  /** Which of these artefacts a session or the queue still names; the others are orphans (their record was lost). */
  knownArtefacts(artefactIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Queued removals, due or not, and live sessions. For metrics. */
  counts(): Promise<{ readonly removals: number; readonly sessions: number }>
  /** Bytes of stored KV where it has a limit, and of sessions (approximate) in this process, if any. For metrics. */
  sizes(): Promise<{ readonly kvBytes: number | undefined; readonly sessionBytes: number | undefined }>
}
