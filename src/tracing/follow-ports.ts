import type { Pool } from '../context/pools.ts'
import type { FinishOutcome, KvPresence } from '../kvcache/kv-connector.ts'
import type { RouteOutcome } from '../routing/router.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { SpanFacts, SpanName } from './attributes.ts'
import type { Follower, OpenSpan } from './follower.ts'

/** The store, with a span for each lookup of a request that is followed. */
export const followStore = <Store extends SessionStore>(store: Store, follower: Follower): Store => {
  const look = async <T extends { readonly kind: string }>(begin: () => Promise<T>): Promise<T> => {
    const span = follower.child('lookup')
    if (span === undefined) return begin()
    try {
      return await spanned(span, begin, ({ kind }) => ({ 'context_cache.result': kind }))
    } catch (error) {
      span.fail('session_store_failed')
      throw error
    } finally {
      span.end()
    }
  }
  const lookups: Pick<SessionStore, 'begin' | 'beginNamed' | 'create'> = {
    begin: (turn) => look(() => store.begin(turn)),
    beginNamed: (turn) => look(() => store.beginNamed(turn)),
    create: (session) => look(() => store.create(session)),
  }
  return override<SessionStore, Store>(store, lookups)
}

/** The pool, with a span for each choice of a pod, each load and each offload of a request that is followed. */
export const followPool = (pool: Pool, follower: Follower): Pool => {
  const { kv } = pool
  const work = async <T>(name: SpanName, pod: string, run: () => Promise<T>, factsOf: (result: T) => SpanFacts) => {
    const span = follower.child(name)
    if (span === undefined) return run()
    span.set({ 'context_cache.pod': pod })
    try {
      return await spanned(span, run, factsOf)
    } finally {
      span.end()
    }
  }
  const kvWork: Pick<Pool['kv'], 'prepare' | 'finish'> = {
    prepare: (turn, budget) =>
      work(
        'load',
        turn.pod,
        () => kv.prepare(turn, budget),
        ({ presence }) => loadFacts(presence),
      ),
    finish: (turn) => work('offload', turn.pod, () => kv.finish(turn), offloadFacts),
  }
  const router: Pool['router'] = {
    route: (input, policyName, mayChoose) => {
      const span = follower.child('route')
      const outcome = pool.router.route(input, policyName, mayChoose)
      span?.set(routeFacts(outcome))
      span?.end()
      return outcome
    },
  }
  return override(pool, { router, kv: override(kv, kvWork) })
}

const spanned = async <T>(span: OpenSpan, run: () => Promise<T>, factsOf: (result: T) => SpanFacts): Promise<T> => {
  const result = await span.run(run)
  span.set(factsOf(result))
  return result
}

/** `target` with other methods. Its own keep their object. */
const override = <Base extends object, Target extends Base>(target: Target, methods: Partial<Base>): Target => {
  const overridden: Target = Object.create(target)
  for (const [name, value] of Object.entries(methods)) Object.defineProperty(overridden, name, { value })
  return overridden
}

const routeFacts = (outcome: RouteOutcome): SpanFacts => ({
  'context_cache.result': outcome.kind,
  ...(outcome.kind === 'routed' ? { 'context_cache.pod': outcome.pod, 'context_cache.policy': outcome.policy } : {}),
})

const loadFacts = (presence: KvPresence): SpanFacts => ({
  'context_cache.result': presence.kind,
  ...(presence.kind === 'miss'
    ? { 'context_cache.reason': presence.reason }
    : {
        'context_cache.tier': presence.tier,
        'context_cache.tokens': presence.tokens,
        'context_cache.load_ms': presence.loadMs,
      }),
})

const offloadFacts = (outcome: FinishOutcome): SpanFacts => {
  const result = { 'context_cache.result': outcome.kind }
  switch (outcome.kind) {
    case 'stored':
      return { ...result, 'context_cache.tokens': outcome.tokens, 'context_cache.bytes': outcome.bytes }
    case 'none':
      return { ...result, 'context_cache.reason': outcome.reason }
    case 'unchanged':
      return result
  }
}
