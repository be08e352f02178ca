import type { TenantLimit } from './limits.ts'
import type { SessionKey, SessionRecord, StoredKv, TenantKey, TokenTotals } from './session-record.ts'

/** A session, which behaves as if it did not exist to every other tenant. */
export type OwnedSession = Pick<SessionRecord, 'key' | 'tenant'>

/** A session to be written before its first turn is forwarded. */
export interface NewSession
  extends Pick<SessionRecord, 'key' | 'tenant' | 'sealedId' | 'model' | 'ttlSeconds' | 'pod'> {
  readonly turnId: string
  /** How long the first turn may take; past that the unfinished session is swept. */
  readonly leaseMs: number
  /** Makes a repeated create find the first one's session; undefined: every create makes a session. */
  readonly retryOf: IdempotencyKey | undefined
}

/** Names a create that may be repeated. */
export interface IdempotencyKey {
  /**
   * HMAC of tenant and `Idempotency-Key`, or of tenant and body for a client's automatic retry, base64url. The session lies
   * together with it ({@link SessionStore.areTogether}).
   */
  readonly digest: string
  /** HMAC of the request's form and body: the same key with another body is a client's mistake. */
  readonly bodyDigest: string
  /** How long the key is remembered, from the first create. */
  readonly rememberMs: number
  /**
   * `record-only` writes the key for a later retry, but never finds an earlier session by it. When the key names
   * another live session already, a retry could be of either, so from then on the key finds none. To it and to
   * `find-young-or-record` a session of several turns is unknown: its client has the id, and repeats no create.
   */
  readonly use: 'find-or-record' | 'find-young-or-record' | 'record-only'
}

export type CreateOutcome =
  | { readonly kind: 'created'; readonly record: SessionRecord }
  /** The idempotency key is known: the turn was begun on the session it names. */
  | { readonly kind: 'existing'; readonly record: SessionRecord }
  /** The idempotency key is known with another body. */
  | { readonly kind: 'key-reused' }
  | Limited

/**
 * The tenant has as much as it may, and nothing was begun. A new session, and an expired one that would start anew, count
 * as sessions; a new one is also refused when the KV of the tenant's last turn did not fit, and still would not.
 */
export interface Limited {
  readonly kind: 'limited'
  readonly limit: TenantLimit
}

/** A turn that is about to be sent to an engine. It holds a lease, so that the session cannot expire under it. */
export interface BeginTurn extends OwnedSession {
  readonly turnId: string
  readonly leaseMs: number
}

/** A turn of the session that a client's name for its conversation chooses; it is created where there is none. */
export interface BeginNamedTurn extends BeginTurn, Pick<NewSession, 'sealedId' | 'model' | 'ttlSeconds'> {
  /** Marks of the prompt, oldest first, at least one (`prompt-marks.ts`): they choose among the session's branches. */
  readonly marks: readonly string[]
  /** Named sessions of the tenant at most. To make room the least recently used one ends that no turn holds. */
  readonly maxNamedSessions: number
  /** The session of the same name under another secret: while it lives and the turn's own does not, the turn is its. */
  readonly earlier?: OwnedSession | undefined
  /**
   * A prompt that gets a new branch of a live session starts with the stored KV of the most recently used branch that has
   * some, shared as by {@link SessionStore.fork}. Default: without KV.
   */
  readonly forksBranch?: boolean | undefined
}

/**
 * `record` is the branch's, under a key of its own. `unknown`: the tenant's named sessions, or the session's branches,
 * are all in use. `deleted`: the removal of an earlier session of this name, or a turn of it, has not ended.
 */
export type BeginNamedOutcome =
  | BeginOutcome
  | { readonly kind: 'created'; readonly record: SessionRecord; readonly nowMs: number }

export type BeginOutcome =
  | { readonly kind: 'active'; readonly record: SessionRecord; readonly nowMs: number }
  /** The session has expired; `complete` revives it with its last TTL and model. The lease is taken. */
  | {
      readonly kind: 'expired'
      readonly ttlSeconds: number
      readonly model: string
      /** `eviction`: it was evicted before its deadline. */
      readonly cause: 'time' | 'eviction'
      readonly nowMs: number
    }
  /** Deleted by its owner, within the tombstone's time. */
  | { readonly kind: 'deleted' }
  /** Never existed, forgotten, unreadable, or another tenant's: these look alike. */
  | { readonly kind: 'unknown' }
  | Limited

/** A turn whose answer completed. */
export interface CompleteTurn extends OwnedSession {
  readonly turnId: string
  /** The pod that really served. */
  readonly pod: string
  readonly usage: TokenTotals
  readonly expiry: TurnExpiry
}

/** What a completed turn does to the session's deadline. */
export type TurnExpiry =
  /** Absolute TTL: nothing. */
  | { readonly kind: 'keep' }
  /** A TTL sent with the turn: the deadline that its answer announced. */
  | { readonly kind: 'set'; readonly ttlSeconds: number; readonly expiresAtMs: number }
  /** Sliding TTL: the session's own TTL counts anew from now. */
  | { readonly kind: 'slide' }

export type CompleteOutcome =
  /** `record.turns` is this turn's number if it counted now; else it counted before, or its lease was one too many. */
  | { readonly kind: 'completed'; readonly record: SessionRecord; readonly isCounted: boolean }
  /** Deleted or forgotten meanwhile: nothing was written, and whatever the turn left behind is queued for removal. */
  | { readonly kind: 'gone' }

/** A session that begins as another one is now. */
export interface ForkedSession {
  readonly from: OwnedSession
  readonly session: Pick<SessionRecord, 'key' | 'sealedId'> & {
    /** Undefined: as of the session that is forked. */
    readonly ttlSeconds: number | undefined
  }
}

export type ForkOutcome =
  | { readonly kind: 'forked'; readonly record: SessionRecord }
  /** The tenant has no such live session. */
  | { readonly kind: 'unknown' }
  | Limited

/** A session with its branches beside the first, of which only a name's has any. */
export interface WholeSession extends SessionRecord {
  readonly branches: readonly SessionRecord[]
}

export interface SessionPage {
  readonly records: readonly WholeSession[]
  readonly hasMore: boolean
}

/**
 * Keeps sessions, their deadlines and their tombstones. What a method does to one session is atomic, decides time by the
 * store's own clock, and takes one round trip; counts of a tenant or of all, in a store of several servers, may miss what
 * others change meanwhile. Another tenant's session behaves exactly as one that does not exist.
 *
 * States of a session: *creating* (until its first turn completes; swept when the turn's lease runs out), *active*, and
 * then a tombstone, *expired* or *deleted*, for `tombstoneSeconds`. A session expires when its deadline has passed and
 * no turn holds a lease. Whatever ends it queues the removal of its KV in the same step ({@link RemovalQueue}).
 * @throws StoreUnavailableError from every method when the store cannot be reached, is too slow, or refuses to write.
 */
export interface SessionStore {
  /** Writes a session in state *creating* whose first turn holds a lease, or finds the one an earlier try wrote. */
  create(session: NewSession): Promise<CreateOutcome>
  /** Looks a session up for a turn and takes its lease, whose later end holds. There are at most `maxLeases`. */
  begin(turn: BeginTurn): Promise<BeginOutcome>
  /**
   * As `begin` and `create` in one step, for the session of a client's name. Several prompts may run under one name:
   * each has a branch, up to {@link maxBranches}, the session's own key being the first. A prompt that continues that
   * of a branch, or repeats it, is its next turn; another one gets a new branch, or the place of the least recently used
   * one, whose stored KV is dropped. Branches beside the first are in no list; a turn of one restarts the session's
   * time to live, and `remove` ends them all.
   */
  beginNamed(turn: BeginNamedTurn): Promise<BeginNamedOutcome>
  /**
   * Makes an *active* session of the same tenant, model and number of turns, whose token totals are 0 and whose time to
   * live begins now. It shares what the other one has stored, of a name's session the first branch: KV of several sessions
   * counts once, and is removed when the last of them has ended or replaced it; a turn of any of them uses it. KV that
   * {@link maxHolders} sessions have is not shared further. A fork to a key that the tenant has is one that is repeated.
   * The sessions lie together ({@link areTogether}).
   */
  fork(fork: ForkedSession): Promise<ForkOutcome>
  /**
   * Counts a turn, releases its lease, and makes a *creating* or *expired* session *active*. A turn counts once, while
   * its lease is there to release; after that, or when the lease was one too many, it only reads. A lease that has run
   * out is there until another turn begins or the session ends.
   */
  complete(turn: CompleteTurn): Promise<CompleteOutcome>
  /**
   * Releases the lease of a failed turn. A *creating* session without another lease goes, with its idempotency key; an
   * *expired* one stays so. The removal of one ended or forgotten is queued again: the turn may have left KV in a pod.
   */
  abandon(turn: OwnedSession & { readonly turnId: string }): Promise<void>
  /**
   * Makes `kv` the session's stored KV if no later turn's is there yet, and takes its artefact off the removal queue;
   * the artefact it replaces is queued. `tenant` and `createdAtMs` are of the record that `complete` returned. `false`: the session
   * is gone, or was revived since, a later turn won, there is no room, or the artefact is not waiting in the queue
   * (never announced, or in removal after its grace: it may be gone); it is queued for removal, due at once. Repeating
   * a commit that won changes nothing. Under a limit of stored KV, that of other sessions is evicted: of expired ones
   * first, then the least recently used (a turn uses KV when it begins), weighted by size, never of one in a turn.
   * Their KV status is `kv_evicted`. Much eviction takes Redis several round trips. KV beyond the tenant's limit is not
   * committed (`tenant_full`), and evicts nothing.
   */
  commitKv(commit: Pick<SessionRecord, 'key' | 'tenant' | 'createdAtMs'> & { readonly kv: StoredKv }): Promise<boolean>
  /** Records why a completed turn left no stored KV. An earlier turn's artefact stays: its prefix is still right. */
  setKvStatus(change: { readonly key: SessionKey; readonly status: string }): Promise<void>
  /** Drops stored KV of no use from the sessions that have it, queues its removal; resolves to how many had some. */
  dropArtefacts(drop: { readonly artefactIds: readonly string[]; readonly reason: string }): Promise<number>
  get(session: OwnedSession): Promise<WholeSession | undefined>
  /**
   * The tenant's live sessions, newest first; `after` is the last key of the page before, and may have ended meanwhile.
   * Once nothing is known of it any more the list starts over. `limit` 1 to 100.
   */
  list(query: {
    readonly tenant: TenantKey
    readonly limit: number
    readonly after: SessionKey | undefined
  }): Promise<SessionPage>
  /** Sets the TTL anew from now. */
  setTtl(change: OwnedSession & { readonly ttlSeconds: number }): Promise<WholeSession | undefined>
  /** Deletes, also one that expired and a turn is about to start anew. `false`: the tenant has no such session. */
  remove(session: OwnedSession): Promise<boolean>
  /** Whether one step can change a session of this key and what is kept under the other key or digest. */
  areTogether(key: SessionKey, other: string): boolean
  /** Names this store for all gateways that share it. When its data is lost, it gets what the first to ask calls it. */
  identity(): Promise<string>
  close(): Promise<void>
}

/** The store cannot answer now. Inference goes on without it; create and delete answer 503. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'
}
