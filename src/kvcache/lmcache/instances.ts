import { withinLimit } from '../../async/deadline.ts'
import { type LmcacheClient, LmcacheFault, type LmcacheInstance } from './lmcache-client.ts'

const maxAgeMs = 2_000
/** How long an instance may take to answer. */
const answerMs = 2_000

/** The answer to a question, asked again when it is older than `ageMs`. An old one holds where that fails. */
const remembered = <T>(ageMs: number, ask: (signal: AbortSignal) => Promise<T>) => {
  let known: { readonly answer: T; readonly untilMs: number } | undefined
  return async (signal: AbortSignal): Promise<T> => {
    if (known === undefined || performance.now() > known.untilMs) {
      const answer = await ask(signal).catch((fault: unknown) => {
        if (known === undefined) throw fault
        return known.answer
      })
      known = { answer, untilMs: performance.now() + ageMs }
    }
    return known.answer
  }
}

/**
 * Which LMCache server serves which engine.
 * @throws LmcacheFault from every method
 */
export interface Instances {
  /** Tokens of one chunk: all instances of a fleet are set alike, so that the first answer counts. */
  chunkTokens(signal: AbortSignal): Promise<number>
  /** Undefined: none is known for the pod, or it has not registered with the coordinator. */
  of(pod: string, signal: AbortSignal): Promise<LmcacheInstance | undefined>
}

/** A pod's server is the instance that `nameOf` names, else the only one on the pod's address. */
export const createInstances = (
  client: Pick<LmcacheClient, 'instances' | 'chunkTokens'>,
  nameOf: (pod: string) => string | undefined,
  chunkTokensAgeMs = 60_000,
): Instances => {
  const recent = remembered(maxAgeMs, (signal) => client.instances(signal))
  return {
    chunkTokens: remembered(chunkTokensAgeMs, async (signal) => {
      const ask = ({ address }: LmcacheInstance): Promise<number> =>
        withinLimit(answerMs, (limited) => client.chunkTokens(address, limited), signal)
      return Promise.any((await recent(signal)).map(ask)).catch(({ errors: [fault] }: AggregateError) => {
        throw fault ?? new LmcacheFault('no instance is registered with the coordinator')
      })
    }),
    of: async (pod, signal) => {
      const instances = await recent(signal)
      const name = nameOf(pod)
      if (name !== undefined) return instances.find(({ id }) => id === name)
      const host = pod.slice(0, pod.lastIndexOf(':')).replace(/^\[|\]$/g, '')
      const local = instances.filter(({ ip }) => ip === host)
      return local.length === 1 ? local[0] : undefined
    },
  }
}
