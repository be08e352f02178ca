import { type LmcacheClient, LmcacheFault, type LmcacheInstance } from './lmcache-client.ts'

/** Which LMCache server serves which engine. */
export interface Instances {
  /** Undefined: none is known for the pod, or it has not registered with the coordinator. @throws LmcacheFault */
  of(pod: string, signal: AbortSignal): Promise<LmcacheInstance | undefined>
  /** Tokens of one chunk: all instances of a fleet are set alike. @throws LmcacheFault */
  chunkTokens(signal: AbortSignal): Promise<number>
  /** All that are registered now. @throws LmcacheFault */
  all(signal: AbortSignal): Promise<readonly LmcacheInstance[]>
}

const maxAgeMs = 2_000
const chunkSizeMaxAgeMs = 60_000

/** The answer to a question, asked again when it is older than `ageMs`. */
const remembered = <T>(ageMs: number, ask: (signal: AbortSignal) => Promise<T>) => {
  let known: { readonly answer: T; readonly untilMs: number } | undefined
  return async (signal: AbortSignal): Promise<T> => {
    if (known === undefined || performance.now() > known.untilMs) {
      known = { answer: await ask(signal), untilMs: performance.now() + ageMs }
    }
    return known.answer
  }
}

/** `nameOf` gives a pod's instance id; a pod without one belongs to the only instance on its own address. */
export const createInstances = (
  client: Pick<LmcacheClient, 'instances' | 'chunkTokens'>,
  nameOf: (pod: string) => string | undefined,
): Instances => {
  const recent = remembered(maxAgeMs, (signal) => client.instances(signal))
  return {
    all: (signal) => client.instances(signal),
    chunkTokens: remembered(chunkSizeMaxAgeMs, async (signal) => {
      const [first] = await recent(signal)
      if (first === undefined) throw new LmcacheFault('no instance is registered with the coordinator')
      return client.chunkTokens(first.address, signal)
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
