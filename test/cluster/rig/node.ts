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

const nodeName = 'rig'
const merge = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch)

/** A node whose containers are processes. */
export interface RigNode {
  /** Ends all pods, and stops to follow the API server. */
  stop(): Promise<void>
}

interface RunningPod {
  readonly network: PodNetwork
  readonly containers: readonly RunningContainer[]
}

/** Takes every pod of the cluster, and runs it from the image that stands for its own. */
export const startNode = async (options: {
  readonly folder: string
  readonly controlPlane: ControlPlane
  readonly network: Network
  readonly children: Children
  /** @throws Error where an image is not known */
  readonly imageOf: (image: string) => Image
  readonly onLine: (line: string) => void
}): Promise<RigNode> => {
  const { controlPlane, network, folder, children, onLine } = options
  const config = new KubeConfig()
  config.loadFromFile(controlPlane.kubeconfigFile)
  const api = config.makeApiClient(CoreV1Api)
  const stopping = new AbortController()
  const pods = new Map<string, Promise<RunningPod>>()
  const ending = new Map<string, Promise<void>>()

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
    await writeVolumes(api, pod, join(podFolder, 'volumes'))
    const place: PodPlace = {
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
      containers.push(await startContainer(place, spec, options.imageOf(spec.image ?? '')))
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
        containers.map(
          async ({ spec, child }) => child.isRunning() && (await succeeds(spec, spec.readinessProbe, address)),
        ),
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
    await api.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }).catch(() => undefined)
  }

  const take = (pod: V1Pod): void => {
    const { uid = '', name = '', namespace = '', deletionTimestamp } = pod.metadata ?? {}
    if (deletionTimestamp !== undefined) {
      if (!ending.has(uid)) ending.set(uid, end(pod))
    } else if (pod.spec?.nodeName === undefined) {
      const body = { metadata: { name }, target: { kind: 'Node', name: nodeName } }
      void api.createNamespacedPodBinding({ name, namespace, body }).catch(() => undefined)
    } else if (!pods.has(uid)) {
      const started = start(pod)
      started.catch((error: unknown) => onLine(`node: ${name} cannot be started: ${String(error)}`))
      pods.set(uid, started)
    }
  }

  await api.createNode({ body: { metadata: { name: nodeName, labels: { 'kubernetes.io/hostname': nodeName } } } })
  const ready = { type: 'Ready', status: 'True', reason: 'Rig', message: '', lastTransitionTime: new Date() }
  const status = { addresses: [{ type: 'InternalIP', address: hostAddress }], conditions: [ready] }
  await api.patchNodeStatus({ name: nodeName, body: { status } }, merge)
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
          await one.value.network.remove().catch(() => undefined)
        }),
      )
    },
  }
}
