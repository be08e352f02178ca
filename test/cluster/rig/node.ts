import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  CoreV1Api,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
  type V1PodStatus,
} from '@kubernetes/client-node'
import type { Children } from '../../../playground/child-process.ts'
import { connectApiServer } from '../../../src/routing/kubernetes/api-server.ts'
import { followList } from '../../../src/routing/kubernetes/follow-list.ts'
import type { ControlPlane } from './control-plane.ts'
import { hostAddress, type Network, type PodNetwork } from './network.ts'
import { type Image, type PodPlace, type RunningContainer, startContainer } from './pod-process.ts'
import { succeeds } from './probes.ts'
import { writeVolumes } from './volumes.ts'

const nodeNames = ['rig-0', 'rig-1'] as const
const merge = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch)

/** Nodes whose containers are processes. */
export interface RigNodes {
  /** Ends all pods, and stops to follow the API server. */
  stop(): Promise<void>
}

interface RunningPod {
  readonly network: PodNetwork
  readonly containers: readonly RunningContainer[]
}

/** Takes every pod of the cluster, and runs it from the image that stands for its own. */
export const startNodes = async (options: {
  readonly folder: string
  readonly controlPlane: ControlPlane
  readonly network: Network
  readonly children: Children
  /** @throws Error where an image is not known */
  readonly imageOf: (image: string) => Image
  readonly onLine: (line: string) => void
}): Promise<RigNodes> => {
  const { controlPlane, network, folder, children, onLine } = options
  const config = new KubeConfig()
  config.loadFromFile(controlPlane.kubeconfigFile)
  const api = config.makeApiClient(CoreV1Api)
  const stopping = new AbortController()
  const pods = new Map<string, Promise<RunningPod>>()
  const ending = new Map<string, Promise<void>>()
  const places = new Map<string, { readonly group: string; node?: string }>()

  const report = async (pod: V1Pod, status: V1PodStatus): Promise<void> => {
    const { name = '', namespace = '' } = pod.metadata ?? {}
    await api.patchNamespacedPodStatus({ name, namespace, body: { status } }, merge).catch((error: unknown) => {
      onLine(`node: status of ${name}: ${String(error)}`)
    })
  }

  const statusOf = (containers: readonly RunningContainer[], address: string, isReady: boolean): V1PodStatus => {
    const now = new Date()
    const status = isReady ? 'True' : 'False'
    return {
      phase: 'Running',
      hostIP: hostAddress,
      podIP: address,
      podIPs: [{ ip: address }],
      startTime: now,
      conditions: ['Ready', 'ContainersReady'].map((type) => ({ type, status, lastTransitionTime: now })),
      containerStatuses: containers.map(({ spec: { name, image = '' } }) => ({
        name,
        image,
        imageID: image,
        ready: isReady,
        restartCount: 0,
        started: true,
        state: { running: { startedAt: now } },
      })),
    }
  }

  const start = async (pod: V1Pod): Promise<RunningPod> => {
    const podFolder = join(folder, pod.metadata?.uid ?? '')
    await mkdir(podFolder, { recursive: true })
    const podNetwork = await network.addPod()
    await writeVolumes(api, pod, { folder: join(podFolder, 'volumes'), claims: join(folder, 'claims') })
    const inPod: PodPlace = {
      pod,
      folder: podFolder,
      network: podNetwork,
      resolverFile: network.resolverFile,
      apiServer: new URL(controlPlane.server),
      api,
      children,
      onLine: (line) => onLine(`${pod.metadata?.name}: ${line}`),
    }
    const containers: RunningContainer[] = []
    for (const spec of pod.spec?.containers ?? []) {
      containers.push(await startContainer(inPod, spec, options.imageOf(spec.image ?? '')))
    }
    await report(pod, statusOf(containers, podNetwork.address, false))
    void watchReadiness(pod, { network: podNetwork, containers })
    return { network: podNetwork, containers }
  }

  /** A pod is out after three failures of its probes, as by default in Kubernetes. */
  const watchReadiness = async (pod: V1Pod, { network: { address }, containers }: RunningPod): Promise<void> => {
    let isReady = false
    let failures = 0
    while (!stopping.signal.aborted && !ending.has(pod.metadata?.uid ?? '')) {
      const found = await Promise.all(
        containers.map(async ({ spec, child }) => child.isRunning() && succeeds(spec, spec.readinessProbe, address)),
      )
      failures = found.every(Boolean) ? 0 : failures + 1
      const next: boolean = failures === 0 || (isReady && failures < 3)
      if (next !== isReady) {
        isReady = next
        await report(pod, statusOf(containers, address, isReady))
      }
      await delay(500)
    }
  }

  const end = async (pod: V1Pod): Promise<void> => {
    const { name = '', namespace = '', uid = '', deletionGracePeriodSeconds = 0 } = pod.metadata ?? {}
    const running = await pods.get(uid)?.catch(() => undefined)
    if (running !== undefined) {
      await Promise.all(running.containers.map((one) => one.stop(deletionGracePeriodSeconds * 1000)))
      await running.network.remove()
    }
    places.delete(uid)
    await api.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }).catch(() => undefined)
  }

  /** Binds a pod to the node that takes pods and has the fewest of its ReplicaSet. */
  const place = async ({ metadata = {} }: V1Pod): Promise<void> => {
    const { uid = '', name = '', namespace = '', labels = {} } = metadata
    if (places.has(uid)) return
    const placed: { readonly group: string; node?: string } = { group: labels['pod-template-hash'] ?? uid }
    places.set(uid, placed)
    const { items } = await api.listNode()
    const pods = (node: string): number =>
      [...places.values()].filter((one) => one.group === placed.group && one.node === node).length
    const [node] = items
      .flatMap(({ metadata: found, spec }) => (spec?.unschedulable === true ? [] : (found?.name ?? [])))
      .toSorted((a, b) => pods(a) - pods(b))
    placed.node = node ?? ''
    const body = { metadata: { name }, target: { kind: 'Node', name: placed.node } }
    await api.createNamespacedPodBinding({ name, namespace, body }).catch(() => places.delete(uid))
  }

  const take = (pod: V1Pod): void => {
    const { uid = '', name = '', deletionTimestamp } = pod.metadata ?? {}
    if (deletionTimestamp !== undefined) {
      if (!ending.has(uid)) ending.set(uid, end(pod))
    } else if (pod.spec?.nodeName === undefined) {
      void place(pod)
    } else if (!pods.has(uid)) {
      const started = start(pod)
      started.catch((error: unknown) => onLine(`node: ${name} cannot be started: ${String(error)}`))
      pods.set(uid, started)
    }
  }

  const ready = { type: 'Ready', status: 'True', reason: 'Rig', message: '', lastTransitionTime: new Date() }
  const status = { addresses: [{ type: 'InternalIP', address: hostAddress }], conditions: [ready] }
  for (const name of nodeNames) {
    await api.createNode({ body: { metadata: { name, labels: { 'kubernetes.io/hostname': name } } } })
    await api.patchNodeStatus({ name, body: { status } }, merge)
  }
  const following = followList({
    server: await connectApiServer(controlPlane.kubeconfigFile),
    path: '/api/v1/pods',
    query: {},
    resyncMs: 600_000,
    timeoutMs: 10_000,
    onObjects: (objects) => {
      for (const object of objects) take(object as V1Pod)
    },
    onChange: (change) => onLine(`node: ${JSON.stringify(change)}`),
    signal: stopping.signal,
  })
  return {
    stop: async () => {
      stopping.abort()
      await following
      const running = await Promise.allSettled(pods.values())
      await Promise.all(
        running.map(async (one) => {
          if (one.status === 'rejected') return
          await Promise.all(one.value.containers.map(({ child }) => child.kill()))
          await one.value.network.remove()
        }),
      )
    },
  }
}
