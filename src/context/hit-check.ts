import { LRUCache } from 'lru-cache'
import type { KvPresence } from '../kvcache/kv-connector.ts'
import type { TokenUsage } from '../openai/usage.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { ContextEvents, JudgedEngines } from './context-events.ts'

/** What a turn's engine was found to hold, or was given. */
export interface PromisedKv {
  readonly tokens: number
  readonly source: JudgedEngines['source']
}

/** A turn with a hit that has completed at the pod that was chosen for it. */
export interface JudgedTurn {
  readonly pod: string
  readonly session: SessionKey
  readonly tenant: TenantKey
  readonly promised: PromisedKv
  readonly usage: TokenUsage
}

/** Whether engines reuse the KV of hits, by `usage`. */
export interface HitCheck {
  /** False: turns of three sessions in a row reused almost nothing, and none has reused anything since. */
  isReused(engines: JudgedEngines): boolean
  turnEnded(engines: JudgedEngines, turn: JudgedTurn): void
}

/** What a presence promises; undefined: nothing. */
export const promisedBy = (presence: KvPresence): PromisedKv | undefined =>
  presence.kind === 'hit' ? { tokens: presence.tokens, source: presence.tier === 'gpu' ? 'kept' : 'loaded' } : undefined

const sessionsInARow = 3
const maxEngines = 1_000

interface Standing {
  /** The latest sessions whose hits were not reused, oldest first, and their tenants. A reused hit clears it. */
  readonly failed: Map<SessionKey, TenantKey>
  /** Tenants of the latest reused hits, at most two. */
  succeeded: readonly TenantKey[]
  isReused: boolean
}

/** Judges in this process's memory. Each change is an event. */
export const createHitCheck = (events: Pick<ContextEvents, 'hitNotReused' | 'reuseChanged'>): HitCheck => {
  const standings = new LRUCache<string, Standing>({
    max: maxEngines,
    memoMethod: () => ({ failed: new Map(), succeeded: [], isReused: true }),
  })
  const keyOf = ({ pool, model, source }: JudgedEngines): string => JSON.stringify([pool, model, source])

  return {
    isReused: (engines) => standings.get(keyOf(engines))?.isReused !== false,
    turnEnded: (engines, { pod, session, tenant, promised, usage }) => {
      const verdict = verdictOf(promised, usage)
      if (verdict === undefined) return
      const standing = standings.memo(keyOf(engines))
      const { failed, succeeded } = standing
      if (verdict === 'reused') {
        failed.clear()
        standing.succeeded = [tenant, ...succeeded.filter((other) => other !== tenant)].slice(0, 2)
      } else {
        events.hitNotReused(engines)
        failed.delete(session)
        failed.set(session, tenant)
        const [oldest] = failed.keys()
        if (failed.size > sessionsInARow && oldest !== undefined) failed.delete(oldest)
      }
      const isReused = verdict === 'reused' || (standing.isReused && !provesFault(standing))
      if (isReused === standing.isReused) return
      standing.isReused = isReused
      events.reuseChanged({ ...engines, pod }, isReused)
    },
  }
}

/** A client may change the beginning of every prompt: one tenant alone proves nothing where it works for others. */
const provesFault = ({ failed, succeeded }: Standing): boolean => {
  const tenants = new Set(failed.values())
  return failed.size >= sessionsInARow && (tenants.size > 1 || succeeded.every((tenant) => tenants.has(tenant)))
}

/** Undefined: the engine does not tell, the prompt is shorter than what it should begin with, or a part was reused. */
const verdictOf = (
  { tokens }: PromisedKv,
  { promptTokens, cachedTokens }: TokenUsage,
): 'reused' | 'not-reused' | undefined => {
  if (cachedTokens === undefined) return undefined
  if (cachedTokens > 0 && cachedTokens * 2 >= Math.min(tokens, promptTokens)) return 'reused'
  // Templates and system prompts of other sessions may be common tokens.
  return promptTokens >= tokens && cachedTokens * 10 < tokens ? 'not-reused' : undefined
}
