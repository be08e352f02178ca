import type { KvCache } from '../kvcache/kv-cache.ts'
import type { PodSource } from '../routing/pod.ts'
import type { PodChange } from '../routing/pod-monitor.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Warnings } from '../telemetry/warnings.ts'

const checkTimeoutMs = 5_000
const kinds = ['engine_shares_kv', 'engine_saves_nothing', 'engine_reuses_nothing'] as const

/** Has the connector check each engine at the start, and again when its pod becomes ready. Findings become warnings. */
export const createEngineChecks = (parts: {
  readonly kv: Pick<KvCache, 'check'>
  readonly pods: Pick<PodSource, 'pods'>
  readonly warnings: Pick<Warnings, 'raise' | 'clear'>
  readonly log: Pick<Logger, 'debug'>
}) => {
  const { kv, pods, warnings, log } = parts
  let isStarted = false

  const check = async (pod: string): Promise<void> => {
    try {
      const findings = await kv.check(pod, AbortSignal.timeout(checkTimeoutMs))
      // Its warnings were forgotten with it.
      if (!pods.pods().some(({ address }) => address === pod)) return
      for (const kind of kinds) {
        const finding = findings.find((one) => one.kind === kind)
        if (finding === undefined) warnings.clear(kind, pod)
        else warnings.raise(kind, pod, finding.text)
      }
    } catch (err) {
      log.debug('an engine could not be checked', { pod, err })
    }
  }

  return {
    /** Resolves when each pod that is ready was checked, or could not be within 5 s. */
    start: async (): Promise<void> => {
      isStarted = true
      const ready = pods.pods().filter((pod) => pod.ready)
      await Promise.all(ready.map(({ address }) => check(address)))
    },
    /** Before `start` it does nothing. */
    podChanged: (change: PodChange): void => {
      if (change.kind === 'ready' && isStarted) void check(change.address)
    },
  }
}
