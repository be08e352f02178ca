import type { PodSource } from '../pod.ts'
import { createPodMonitor, type PodChange, type PodFacts, type PodMonitorOptions } from '../pod-monitor.ts'
import { connectApiServer } from './api-server.ts'
import { endpointsOfPods, endpointsOfSlices, type KubernetesEndpoint, type PoolPods, poolOf } from './endpoints.ts'
import { followList } from './follow-list.ts'

export interface KubernetesPodSourceOptions extends PodMonitorOptions {
  /** Default: that of the gateway's own pod, or of the kubeconfig's context. */
  readonly namespace?: string | undefined
  /** One of these three says which pods. A service's pods are read from its EndpointSlices, the others' from Pods. */
  readonly service?: string | undefined
  readonly selector?: string | undefined
  readonly inferencePool?: string | undefined
  /** Each is an engine. Empty: those of the service or of the InferencePool. */
  readonly ports: readonly number[]
  /** Label that names the model of a pod, and the one that names its LMCache instance. */
  readonly modelLabel?: string | undefined
  readonly instanceLabel?: string | undefined
  readonly resyncMs: number
  /** Limit of one list. */
  readonly timeoutMs: number
  /** Default: that of the pod that this process runs in. */
  readonly kubeconfigFile?: string | undefined
}

/**
 * The pods of a service, label selector or InferencePool. One that Kubernetes calls unready gets no turns, an ending
 * one leaves the list. While the API server is away known pods stay, under their health checks, and `onChange` says so.
 * @throws Error when the optional package is missing, or there is no way to the API server
 */
export const createKubernetesPodSource = async (options: KubernetesPodSourceOptions): Promise<PodSource> => {
  const { service, selector, inferencePool, ports, modelLabel, instanceLabel, resyncMs, timeoutMs } = options
  const server = await connectApiServer(options.kubeconfigFile)
  const namespace = encodeURIComponent(options.namespace ?? server.namespace)
  const monitor = createPodMonitor(options)
  const stopping = new AbortController()
  const { signal } = stopping
  const started = Promise.withResolvers<void>()
  let following: Promise<void> | undefined

  const onEndpoints = (endpoints: readonly KubernetesEndpoint[], isUnchecked = false): void => {
    const sorted = endpoints.toSorted((a, b) => (a.address < b.address ? -1 : 1))
    const facts = new Map<string, PodFacts>()
    for (const { address, isReady, labels } of sorted) {
      const [model, instance] = [modelLabel, instanceLabel].map((label) => label && labels[label])
      facts.set(address, { isServing: isReady, isUnchecked, model, instance })
    }
    void monitor.watch([...facts.keys()], facts).then(started.resolve)
  }
  const onChange = (change: PodChange): void => {
    options.onChange(change)
    if (change.kind === 'list-stale') started.resolve()
  }
  const common = { server, resyncMs, timeoutMs, onChange }

  const followPods = ({ selector: labelSelector, ports: podPorts, isH2c }: PoolPods, until: AbortSignal) =>
    followList({
      ...common,
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: { labelSelector },
      onObjects: (pods) => onEndpoints(endpointsOfPods(pods, podPorts), isH2c),
      signal: until,
    })

  const followSlices = () =>
    followList({
      ...common,
      path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
      query: { labelSelector: `kubernetes.io/service-name=${service}` },
      onObjects: (slices) => onEndpoints(endpointsOfSlices(slices, ports)),
      signal,
    })

  /** Ends, with all that it started, when the signal fires. */
  const followPool = async (): Promise<void> => {
    let followed = 'nothing'
    let stopPods = new AbortController()
    let ended: Promise<unknown> = Promise.resolve()
    await followList({
      ...common,
      path: `/apis/inference.networking.k8s.io/v1/namespaces/${namespace}/inferencepools`,
      query: { fieldSelector: `metadata.name=${inferencePool}` },
      onObjects: ([object]) => {
        const pool = poolOf(object)
        const next = JSON.stringify(pool)
        if (followed === next) return
        followed = next
        stopPods.abort()
        // The list that ends here does not say that it is no longer stale.
        onChange({ kind: 'list-current', name: 'pods' })
        if (pool === undefined) return onEndpoints([])
        stopPods = new AbortController()
        const pods = followPods(ports.length > 0 ? { ...pool, ports } : pool, stopPods.signal)
        ended = Promise.all([ended, pods])
      },
      signal,
    })
    stopPods.abort()
    await ended
  }

  const follow = (): Promise<void> => {
    if (selector !== undefined) return followPods({ selector, ports, isH2c: false }, signal)
    return service === undefined ? followPool() : followSlices()
  }

  return {
    ...monitor,
    start: () => {
      following = follow().then(started.resolve)
      return started.promise
    },
    stop: async () => {
      stopping.abort()
      await monitor.stop()
      await following
    },
  }
}
