import type { PodAddress, PodSource } from './pod.ts'
import { createPodMonitor, type PodMonitorOptions } from './pod-monitor.ts'
import { createPodProbe } from './pod-probe.ts'

/** The pods of a fixed list. Each is ready once its health check answers, and out after two failed checks or when a turn saw it fail. */
export const createStaticPodSource = (
  options: PodMonitorOptions & {
    readonly addresses: readonly PodAddress[]
    /** How long a health check may take, milliseconds. */
    readonly healthTimeoutMs: number
  },
): PodSource => {
  const monitor = createPodMonitor({ ...options, probe: createPodProbe({ deadlineMs: options.healthTimeoutMs }) })
  return { ...monitor, start: () => monitor.watch(options.addresses) }
}
