import { z } from 'zod'
import { addressOf, type PodAddress } from '../pod.ts'

/** One port of one pod, as Kubernetes describes it. */
export interface KubernetesEndpoint {
  readonly address: PodAddress
  /** Ready, by its probes. */
  readonly isReady: boolean
  /** Of the pod; where a service lists the pods, of the service. */
  readonly labels: Readonly<Record<string, string>>
}

const labels = z.record(z.string(), z.string()).nullish()
const port = z.int().min(1).max(65_535)

const pod = z.object({
  metadata: z.object({ labels, deletionTimestamp: z.string().nullish() }),
  status: z.object({
    phase: z.string().nullish(),
    podIP: z.string().nullish(),
    conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
  }),
})

const endpoint = z.object({
  addresses: z.array(z.string()),
  conditions: z.object({ ready: z.boolean().nullish(), terminating: z.boolean().nullish() }).nullish(),
})

const slice = z.object({
  metadata: z.object({ labels }),
  addressType: z.string(),
  ports: z.array(z.object({ port: port.nullish() })).nullish(),
  endpoints: z.array(endpoint).nullish(),
})

const pool = z.object({
  spec: z.object({
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    targetPorts: z.array(z.object({ number: port })).min(1),
    appProtocol: z.string().nullish(),
  }),
})

/** What an InferencePool says about its pods. */
export interface PoolPods {
  readonly selector: string
  readonly ports: readonly number[]
  /** HTTP/2 without TLS, which the gateway does not speak to engines. */
  readonly isH2c: boolean
}

/** Undefined: the object is no InferencePool. */
export const poolOf = (object: unknown): PoolPods | undefined => {
  const spec = pool.safeParse(object).data?.spec
  if (spec === undefined) return undefined
  const terms = Object.entries(spec.selector.matchLabels).map(([name, value]) => `${name}=${value}`)
  const ports = spec.targetPorts.map(({ number }) => number)
  return { selector: terms.sort().join(','), ports, isH2c: spec.appProtocol === 'kubernetes.io/h2c' }
}

/** The endpoints of Pods, one for each port. None of a pod without an address, or that ends: it gets no new turns. */
export const endpointsOfPods = (objects: readonly unknown[], ports: readonly number[]): readonly KubernetesEndpoint[] =>
  objects.flatMap((object) => {
    const { metadata, status } = pod.safeParse(object).data ?? {}
    const host = status?.podIP
    if (!host || metadata?.deletionTimestamp || status.phase === 'Succeeded' || status.phase === 'Failed') return []
    const isReady = status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false
    return ports.map((one) => ({ address: addressOf(host, one), isReady, labels: metadata?.labels ?? {} }))
  })

/** Endpoints by EndpointSlices of IPv4, else of IPv6 (they list the same pods). `ports` empty: each slice's own. */
export const endpointsOfSlices = (
  objects: readonly unknown[],
  ports: readonly number[],
): readonly KubernetesEndpoint[] => {
  const slices = objects.flatMap((object) => slice.safeParse(object).data ?? [])
  const family = slices.some(({ addressType }) => addressType === 'IPv4') ? 'IPv4' : 'IPv6'
  return slices.filter(({ addressType }) => addressType === family).flatMap((found) => endpointsOfSlice(found, ports))
}

const endpointsOfSlice = (found: z.infer<typeof slice>, ports: readonly number[]): readonly KubernetesEndpoint[] => {
  const own = found.ports?.flatMap((one) => one.port ?? []) ?? []
  return (found.endpoints ?? [])
    .filter((one) => one.conditions?.terminating !== true)
    .flatMap(({ addresses, conditions }) =>
      // The addresses are all of one pod: https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/
      addresses.slice(0, 1).flatMap((host) =>
        (ports.length > 0 ? ports : own).map((one) => ({
          address: addressOf(host, one),
          isReady: conditions?.ready !== false,
          labels: found.metadata.labels ?? {},
        })),
      ),
    )
}
