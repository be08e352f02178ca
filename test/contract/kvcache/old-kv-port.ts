import type { JsonValue } from '../../../src/kvcache/kv-connector.ts'
import type { SessionKey, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'

/** A JSON value that is spliced into a request body as one of its top-level members. */
export type EngineField = JsonValue

/** One turn of one session, as a connector sees it. */
export interface KvTurn {
  readonly session: SessionKey
  readonly tenant: TenantKey
  readonly model: string
  readonly turnId: string
  /** `host:port` of the pod that serves the turn. */
  readonly pod: string
  /** The session starts anew (it had expired): KV of its earlier life may still lie in the pod and must not be used. Default false. */
  readonly startsAnew?: boolean
  /** False: loading what is stored would take longer than computing it, so that only what lies in the pod is used. Default true. Means nothing to an engine that loads by itself (LMCache). */
  readonly mayLoad?: boolean
  /** Why nothing of the session was stored, as the last offload said: the `reason` of its outcome. Only in `attach`. */
  readonly kvStatus?: string | undefined
  /** When the session's present life began, milliseconds since 1970; unknown in a turn that begins one. Only in `attach`. */
  readonly createdAtMs?: number | undefined
}

/** What lies in the chosen pod at the moment the turn is forwarded. `tokens` counts the session's tokens whose KV is there. */
export type KvPresence =
  /** The pod still held it: in the engine's own cache, or (`cpu`) in memory beside the engine, from where it takes it by itself. */
  | { readonly kind: 'resident'; readonly tokens: number; readonly tier?: 'gpu' | 'cpu' }
  /** It was loaded from the persistent store for this turn. */
  | { readonly kind: 'loaded'; readonly tokens: number; readonly loadMs: number }
  /** It lies in the store, and the engine fetches it by itself when the turn arrives; the gateway cannot make it do so before. */
  | { readonly kind: 'on-demand'; readonly tokens: number }
  /** The session has no KV anywhere yet. */
  | { readonly kind: 'empty' }
  /**
   * The stored artefact is gone or damaged: it will never load again, and is dropped. With `isKept` the store does not list it now and may list it
   * again (a coordinator that restarted), so the artefact stays.
   */
  | { readonly kind: 'missing'; readonly isKept?: true }
  /** The artefact belongs to another engine build, model or connector than this pod's. The artefact stays: other pods may load it. */
  | { readonly kind: 'incompatible' }
  /** It is stored, and was not loaded: computing it takes less time. */
  | { readonly kind: 'not-worthwhile' }
  /** The load did not end within the budget. */
  | { readonly kind: 'timed-out' }
  /** The engine or the store refused; `cause` is for the log. */
  | { readonly kind: 'failed'; readonly cause: unknown }
  /** The store of KV does not answer, and was not asked again. */
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  /** The pod has no room to hold a session apart right now: the turn runs, but its KV cannot be kept. */
  | { readonly kind: 'no-room' }

/** The claim of a turn after which there is nothing to do. */
export const settledClaim = 'settled'

/** Time limit of an attach. `signal` is made when it is first read, which costs more than an attach that waits for nothing. */
export interface AttachBudget {
  readonly signal: AbortSignal
}

export interface AttachOutcome {
  readonly presence: KvPresence
  /** Body fields that make the engine use (and only use) this session's KV. */
  readonly fields: Readonly<Record<string, EngineField>>
  /**
   * What the connector took for this turn; passed to `offload` or `detach`, perhaps in another process. `settledClaim`: it took nothing, and
   * the turn leaves nothing to store, so that neither is called.
   */
  readonly claim: string
}

export type OffloadOutcome =
  | {
      readonly kind: 'stored'
      readonly artefactId: string
      readonly payload: string
      readonly tokens: number
      readonly bytes: number
    }
  /** Nothing new came of the turn: what is stored stays. */
  | { readonly kind: 'unchanged' }
  /** Another turn of the session still runs in the same place, and its end will offload more. */
  | { readonly kind: 'superseded' }
  /** Nothing was stored. `reason` is one word for people: `too_short`, `too_large`, `not_verified`, `no_room`, `offload_failed`. */
  | { readonly kind: 'none'; readonly reason: string; readonly cause?: unknown }

export interface OffloadRequest {
  readonly turn: KvTurn
  readonly claim: string
  /** Prompt plus output tokens of the turn by the engine's `usage`; undefined when the answer carried none. */
  readonly totalTokens: number | undefined
  /** The prompt's part of them. Default: unknown. */
  readonly promptTokens?: number | undefined
  /** Must be awaited before the engine is asked to write anything: it records the artefact, so that it cannot be orphaned. */
  readonly announce: (artefact: { readonly artefactId: string; readonly payload: string }) => Promise<void>
  readonly signal: AbortSignal
}

/** What has to disappear. */
export type KvRemoval =
  | { readonly kind: 'artefact'; readonly session: SessionKey; readonly payload: string }
  | { readonly kind: 'session'; readonly session: SessionKey; readonly payload: string | undefined }

export type RemoveOutcome =
  | { readonly kind: 'removed' }
  /** Something of it is in use (a turn that still runs, a pod that does not answer): try again later. */
  | { readonly kind: 'busy'; readonly reason: string }
  /** The payload is not of this connector, which removed nothing. The removal stays queued until a gateway runs the connector that stored it. */
  | { readonly kind: 'foreign' }

/**
 * Moves KV between a persistent store and the pods of one kind of engine. Faults are outcomes, never exceptions: a turn goes on without
 * its KV. All methods can be called from any gateway process; `claim` and `payload` carry what they need.
 */
export interface KvConnector {
  readonly name: string
  /** Makes the pod ready for a turn: finds the session's KV there or loads `kv`, before `budget.signal` fires. */
  attach(turn: KvTurn, kv: StoredKv | undefined, budget: AttachBudget): Promise<AttachOutcome>
  /** Body fields for a turn of the tenant that has no session: they keep it from meeting any session's KV. */
  fieldsWithoutSession(tenant: TenantKey): Readonly<Record<string, EngineField>>
  /** Brings what the turn left in the pod into the store, or confirms that the engine did so; then lets the claim go. */
  offload(request: OffloadRequest): Promise<OffloadOutcome>
  /** Lets the claim of a turn go that failed or ran elsewhere. */
  detach(turn: KvTurn, claim: string, signal: AbortSignal): Promise<void>
  /** Removes from the store and from every pod. Idempotent. */
  remove(removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome>
  /**
   * Looks for KV that nobody remembers any more (a lost session store, a pod that died in a save) and removes it. Called before the first
   * turn and then from time to time. `isKnown` tells which artefact ids are still in use; `onUseless` is told those that are, but that no pod
   * can load any more, since all of them run another engine or model. Resolves to how many were removed.
   */
  reconcile(
    isKnown: (artefactIds: readonly string[]) => Promise<ReadonlySet<string>>,
    signal: AbortSignal,
    onUseless?: (artefactIds: readonly string[]) => Promise<void>,
  ): Promise<number>
}
