import type { SessionKey, StoredKv, TenantKey } from '../sessions/session-record.ts'
import type { KvMissReason } from './reasons.ts'

/** A JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** Top-level members that the gateway adds to a request body. They replace a client's members of the same name. */
export type EngineFields = Readonly<Record<string, JsonValue>>

/** One turn of one session on the pod that was chosen for it. */
export interface KvTurn {
  readonly session: SessionKey
  readonly tenant: TenantKey
  /** As the client names it. */
  readonly model: string
  readonly turnId: string
  /** `host:port` of the pod. */
  readonly pod: string
}

/** KV of a session in the connector's store, as `finish` described it. */
export type KvArtefact = Pick<StoredKv, 'artefactId' | 'payload' | 'tokens' | 'bytes'>

/** A turn that is about to be forwarded. */
export interface StartingTurn extends KvTurn {
  /** The request goes to `/v1/messages`, where some engines ignore fields. Default: to a path of OpenAI's API. */
  readonly isMessages?: boolean
  /** What is stored of the session; undefined: nothing. */
  readonly stored: KvArtefact | undefined
  /** The session had expired and starts again under its id: KV of its earlier life must not be used. */
  readonly restarted: boolean
  /** When the session's present life began, milliseconds since 1970; undefined in a turn that begins one. */
  readonly createdAtMs: number | undefined
  /** More than half of the prompt is left to compute: turns like it leave a place in the pod to others. Default: false. */
  readonly isLong?: boolean
}

/** Time limits of `prepare`. The signals are made when they are first read: read them only before work that may wait. */
export interface PrepareBudget {
  /** For the KV: fires when computing it is sooner. */
  readonly signal: AbortSignal
  /** For a place in the pod, which is worth a longer wait: the turn has no other way to keep its KV. Default: `signal`. */
  readonly placeSignal?: AbortSignal | undefined
  /** Await it right before a load from the store: why there must be none, and the turn is a miss. Default: load. */
  readonly refuseLoad?: (() => Promise<KvMissReason | undefined>) | undefined
}

/** What lies in the pod when the turn is forwarded: the value of `x-context-cache`. */
export type KvPresence = KvHit | KvMiss

/** KV of that many tokens of the session lies in the pod, or the engine fetches it by itself. */
export interface KvHit {
  readonly kind: 'hit'
  /** Where it lay: in the engine, in memory beside it, or in the persistent store. */
  readonly tier: 'gpu' | 'cpu' | 'store'
  readonly tokens: number
  /** Only with tier `store`. Default: the engine loads it on demand. */
  readonly loadMs?: number
}

export interface KvMiss {
  readonly kind: 'miss'
  readonly reason: KvMissReason
  /** What is stored will never load again; the session forgets it. Default false. */
  readonly gone?: boolean
  /** Nothing listens at the pod: the turn goes to another one where there is one. Default false. */
  readonly isPodAway?: boolean
  /** For the log. */
  readonly cause?: unknown
}

/** Outcome of `prepare`. */
export interface Prepared {
  readonly presence: KvPresence
  /** They make the engine use the session's KV, and no other. */
  readonly fields: EngineFields
  /** A JSON value that `finish` or `release` receives, perhaps in another process. Undefined: neither is called. */
  readonly claim?: JsonValue
  /** Without a claim: why nothing of the turn will be stored; the session shows it. Default: what it showed before. */
  readonly notStored?: string
}

/** A turn that has completed. */
export interface EndedTurn extends KvTurn {
  /** When the session's present life began, milliseconds since 1970. */
  readonly createdAtMs: number
  /** From `prepare`. It comes back from outside of the process: parse it. */
  readonly claim: unknown
  /** Prompt plus output tokens by the engine's `usage`; undefined: the response has none. */
  readonly totalTokens: number | undefined
  /** The prompt's part of them. */
  readonly promptTokens: number | undefined
  /** Await it before writing, so that no artefact is orphaned. Rejects if the session store is unavailable. */
  readonly announce: (artefact: Pick<KvArtefact, 'artefactId' | 'payload'>) => Promise<void>
  readonly signal: AbortSignal
}

/** Outcome of `finish`. */
export type FinishOutcome<Reason extends string = string> =
  | ({ readonly kind: 'stored' } & KvArtefact)
  /** The turn left nothing new: what is stored stays. */
  | { readonly kind: 'unchanged' }
  /** Nothing is stored. `reason`: one word, which the session shows ([reasons.ts](reasons.ts) has those in use). */
  | { readonly kind: 'none'; readonly reason: Reason; readonly cause?: unknown }

/** A turn that failed, or whose session is gone. `pod` is the one that served it, or was chosen where none did. */
export interface ReleasedTurn extends KvTurn {
  readonly claim: unknown
  readonly signal: AbortSignal
}

/** KV that has to disappear from the store; for `session` from the pods as well. */
export type KvRemoval =
  | { readonly kind: 'artefact'; readonly session: SessionKey; readonly payload: string }
  | { readonly kind: 'session'; readonly session: SessionKey; readonly payload: string | undefined }

export type RemoveOutcome =
  | { readonly kind: 'removed' }
  /** Something of it is in use, or does not answer: the removal is tried again later. */
  | { readonly kind: 'busy'; readonly reason: string }
  /** Another connector stored it: the removal waits until a gateway runs that connector. */
  | { readonly kind: 'foreign' }

/** What a sweep may ask about artefacts. */
export interface KnownArtefacts {
  /** Which of the ids are still in use. */
  known(artefactIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Makes sessions forget artefacts that no pod can load any more. */
  forget(artefactIds: readonly string[]): Promise<void>
}

/** What a connector finds out about an engine by asking it, for the operator. Turns go on as they are. */
export interface EngineFinding {
  /**
   * `engine_shares_kv`: the engine can start one tenant's request from another one's KV, whatever the gateway sends.
   * `engine_saves_nothing`: it lacks an option, or a version, without which no KV is stored.
   * `engine_reuses_nothing`: it loads KV, and computes the prompt again all the same.
   */
  readonly kind: 'engine_shares_kv' | 'engine_saves_nothing' | 'engine_reuses_nothing'
  /** One sentence that names the engine, the consequence and the remedy. */
  readonly text: string
}

/**
 * Moves KV between a store and the pods of one kind of engine. If it throws, its host ([kv-cache.ts](kv-cache.ts))
 * makes a miss of it and the turn goes on. Any gateway may call any method. How to write one: docs/connectors.md.
 */
export interface KvConnector {
  /** Finds the session's KV in the pod or loads it. Settles soon after `budget.signal` fires, then without a claim. */
  prepare(turn: StartingTurn, budget: PrepareBudget): Promise<Prepared>
  /** Fields that meet no other session's KV: of a turn without a session, or of `turn`, whose `prepare` failed. */
  isolation?(tenant: TenantKey, turn?: StartingTurn): EngineFields
  /** Fields of a request without a session, where the engine would start it from KV of a session. Default: none. */
  readonly constants?: EngineFields
  /** Stores what the turn left in the pod, or confirms that the engine did. Releases the claim, also when it fails. */
  finish?(turn: EndedTurn): Promise<FinishOutcome>
  /** Releases the claim of a turn. */
  release?(turn: ReleasedTurn): Promise<void>
  /** Removes from store and pods. Idempotent. Default: nothing is stored. */
  remove?(removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome>
  /** Removes forgotten KV before the first turn, then from time to time. */
  sweep?(artefacts: KnownArtefacts, signal: AbortSignal): Promise<void>
  /**
   * Asks a pod's engine what the operator has to know: what it shares between tenants, or lacks. Called before the
   * first turn, and when a pod becomes ready. Throws if that cannot be found out now. Default: nothing is found.
   */
  check?(pod: string, signal: AbortSignal): Promise<readonly EngineFinding[]>
  close?(): Promise<void>
}
