import { LRUCache } from 'lru-cache'
import type { EngineHttp } from '../../engines/engine-http.ts'

/** Tells the starts of a pod's process apart: after another start, nothing is cached there any more. */
export interface PodBoots {
  /** Empty where the pod does not tell. Never rejects. */
  of(pod: string): Promise<string>
  /** The same, if it was asked for just now. */
  atHand(pod: string): string | undefined
}

const startTime = /^process_start_time_seconds ([\d.e+]+)$/m

/** Reads the time at which the pod's process started off its Prometheus metrics. */
export const createPodBoots = (
  http: EngineHttp,
  { callTimeoutMs, maxAgeMs }: { readonly callTimeoutMs: number; readonly maxAgeMs: number },
): PodBoots => {
  const boots = new LRUCache<string, string>({
    max: 10_000,
    ttl: maxAgeMs,
    // Else it makes a timer for every millisecond in which somebody asks, to read the clock less often.
    ttlResolution: 0,
    fetchMethod: async (pod) => {
      const signal = AbortSignal.timeout(callTimeoutMs)
      const reply = await http.call({ method: 'GET', pod, path: '/metrics', signal })
      return reply.kind === 'answered' ? (startTime.exec(reply.text)?.[1] ?? '') : ''
    },
  })
  return { of: async (pod) => (await boots.fetch(pod)) ?? '', atHand: (pod) => boots.get(pod) }
}
