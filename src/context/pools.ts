import type { KvCache } from '../kvcache/kv-cache.ts'
import type { KnownArtefacts, KvRemoval, RemoveOutcome } from '../kvcache/kv-connector.ts'
import type { CostEstimate } from '../routing/cost-model.ts'
import type { PodSource } from '../routing/pod.ts'
import type { Router } from '../routing/router.ts'
import type { ModelService } from '../routing/served-models.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { SessionKey } from '../sessions/session-record.ts'

/** How engines answer /v1/responses: themselves, or by a translation to /v1/chat/completions. */
export type ResponsesApi = 'native' | 'chat'

/** Pods with equal engines, and what a gateway process keeps for them. */
export interface Pool {
  /** Named in tickets, payloads of stored KV and keys of stores. */
  readonly name: string
  /** How the pool serves a model. Reads memory only. */
  serves(model: string): ModelService
  /** Tokens that a prompt of the model and its answer may have together. Undefined: no engine tells. Default: undefined. */
  readonly contextTokens?: (model: string) => number | undefined
  /** `chat`: its engines have /v1/chat/completions, but no /v1/responses. Default: `native`. */
  readonly responsesApi?: ResponsesApi
  readonly router: Router
  readonly pods: Pick<PodSource, 'pods' | 'turnStarted' | 'turnEnded' | 'markUnhealthy'>
  readonly kv: KvCache
  readonly costs: CostEstimate
  readonly predictor: TtftPredictor
  /** Longest time that a turn waits for its KV, milliseconds. */
  readonly maxLoadMs: number
}

/** The model's name where an engine lists it. A client may have made up any other, which is for no log or metric. */
export const listedModel = (pool: Pool | undefined, model: string | undefined): string | undefined =>
  model !== undefined && pool?.serves(model) === 'listed' ? model : undefined

/** All pools of the gateway. Most have one, which then serves every turn. */
export interface Pools {
  /** First pool that lists the model, else may serve it, else the first, which refuses it. Undefined: the first. */
  forModel(model: string | undefined): Pool
  /** Undefined: no pool has this name. */
  named(name: string): Pool | undefined
  /** The session's KV is removed from all pods: no predictor counts on it. */
  forget(session: SessionKey): void
  /** Removes from every pool that holds something. `foreign`: the KV belongs to none of them. */
  remove(removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome>
  /** Removes KV that nobody remembers. A fault in one pool does not prevent the others. */
  sweep(artefacts: KnownArtefacts, signal: AbortSignal): Promise<void>
}

export const createPools = (pools: readonly [Pool, ...Pool[]]): Pools => {
  const byName = new Map(pools.map((pool) => [pool.name, pool]))
  const [first, ...others] = pools
  return {
    forModel: (model) => {
      if (model === undefined || others.length === 0) return first
      return (
        pools.find((pool) => pool.serves(model) === 'listed') ??
        pools.find((pool) => pool.serves(model) === 'possible') ??
        first
      )
    },
    named: (name) => byName.get(name),
    forget: (session) => {
      for (const { predictor } of pools) predictor.forget(session)
    },
    remove: async (removal, signal) => {
      const outcomes = await Promise.all(pools.map(({ kv }) => kv.remove(removal, signal)))
      return (
        outcomes.find(({ kind }) => kind === 'busy') ??
        outcomes.find(({ kind }) => kind === 'removed') ?? { kind: 'foreign' }
      )
    },
    sweep: async (artefacts, signal) => {
      await Promise.all(pools.map(({ kv }) => kv.sweep(artefacts, signal)))
    },
  }
}
