import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  createKubernetesPodSource,
  type KubernetesPodSourceOptions,
} from '../../../src/routing/kubernetes/kubernetes-pod-source.ts'
import type { PodSource } from '../../../src/routing/pod.ts'
import { eventually } from '../../support/eventually.ts'
import type { KubernetesObject } from '../../support/fake-api-server.ts'
import { type FakeEngine, startFakeEngine } from '../../support/fake-engine.ts'

export const paths = {
  pods: '/api/v1/namespaces/default/pods',
  slices: '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
  pools: '/apis/inference.networking.k8s.io/v1/namespaces/default/inferencepools',
} as const

/** An API server that a test fills. */
export interface ApiServerBed {
  /** For a kubeconfig: the cluster, and the user's token. */
  readonly cluster: Readonly<Record<string, unknown>>
  readonly token: string
  /** Two addresses of this machine, which pods of this cluster may have. */
  readonly hosts: readonly [string, string]
  /** Creates the object, or replaces it, with its status. */
  put(path: string, object: KubernetesObject): Promise<void>
  /** Of a pod with `finalizers`: it stays, and is terminating. */
  remove(path: string, name: string): Promise<void>
  /** Removes all that `put` made. */
  clear(): Promise<void>
}

export const podOf = (name: string, host: string, isReady: boolean, labels: Readonly<Record<string, string>> = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'engines', ...labels }, finalizers: ['example.com/hold'] },
  spec: { containers: [{ name: 'engine', image: 'engine' }] },
  status: {
    phase: 'Running',
    podIP: host,
    podIPs: [{ ip: host }],
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
  },
})

const sliceOf = (name: string, port: number, endpoints: readonly object[]) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, labels: { 'kubernetes.io/service-name': 'engines', model: 'small' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port }],
  endpoints,
})

export const poolOf = (matchLabels: Readonly<Record<string, string>>, ports: readonly number[], more: object = {}) => ({
  apiVersion: 'inference.networking.k8s.io/v1',
  kind: 'InferencePool',
  metadata: { name: 'engines' },
  spec: {
    selector: { matchLabels },
    targetPorts: ports.map((number) => ({ number })),
    endpointPickerRef: { name: 'picker', port: { number: 9002 } },
    ...more,
  },
})

/** A file with the way to the API server of the bed. */
export const writeKubeconfig = async (
  bed: Pick<ApiServerBed, 'cluster' | 'token'>,
  folder: string,
): Promise<string> => {
  const file = join(folder, 'kubeconfig')
  const clusters = [{ name: 'one', cluster: bed.cluster }]
  const users = [{ name: 'one', user: { token: bed.token } }]
  const contexts = [{ name: 'one', context: { cluster: 'one', user: 'one', namespace: 'default' } }]
  await writeFile(file, JSON.stringify({ clusters, users, contexts, 'current-context': 'one' }))
  return file
}

/** What holds of pods from Kubernetes, on any API server. */
export const describeKubernetesPods = (bedOf: () => ApiServerBed): void => {
  let folder: string
  let engines: readonly FakeEngine[]
  let port: number
  let source: PodSource | undefined

  beforeEach(async () => {
    const [first, second] = bedOf().hosts
    folder = await mkdtemp(join(tmpdir(), 'kubernetes-'))
    const engine = await startFakeEngine({ host: first })
    port = engine.port
    engines = [engine, await startFakeEngine({ host: second, port }), await startFakeEngine({ host: first })]
  })

  afterEach(async () => {
    await source?.stop()
    await bedOf().clear()
    await Promise.all(engines.map((engine) => engine.stop()))
    await rm(folder, { recursive: true })
  })

  const start = async (change: Partial<KubernetesPodSourceOptions>): Promise<void> => {
    source = await createKubernetesPodSource({
      healthIntervalMs: 10,
      healthTimeoutMs: 10_000,
      turnLeaseMs: 60_000,
      onChange: () => undefined,
      ports: [],
      resyncMs: 60_000,
      timeoutMs: 10_000,
      kubeconfigFile: await writeKubeconfig(bedOf(), folder),
      ...change,
    })
    await source.start()
  }
  const pods = (): Readonly<Record<string, boolean>> =>
    Object.fromEntries(source?.pods().map(({ address, ready }) => [address, ready]) ?? [])
  const at = (host: 0 | 1, atPort = port): string => `${bedOf().hosts[host]}:${atPort}`

  describe('a label selector', () => {
    test('follows pods as they come, become ready, end and go', async () => {
      const [first, second] = bedOf().hosts
      await bedOf().put(paths.pods, podOf('a', first, true))
      await start({ selector: 'app=engines', ports: [port] })
      expect(pods()).toEqual({ [at(0)]: true })
      await bedOf().put(paths.pods, podOf('b', second, false))
      await eventually(() => expect(pods()).toEqual({ [at(0)]: true, [at(1)]: false }))
      await bedOf().put(paths.pods, podOf('b', second, true))
      await eventually(() => expect(pods()).toEqual({ [at(0)]: true, [at(1)]: true }))
      await bedOf().put(paths.pods, podOf('a', first, false))
      await eventually(() => expect(pods()).toEqual({ [at(0)]: false, [at(1)]: true }))
      await bedOf().remove(paths.pods, 'a')
      await eventually(() => expect(pods()).toEqual({ [at(1)]: true }))
    })

    test('takes no pod of other labels, and each port as an engine', async () => {
      const [first, second] = bedOf().hosts
      await bedOf().put(paths.pods, podOf('a', first, true))
      await bedOf().put(paths.pods, podOf('b', second, true, { app: 'other' }))
      const third = engines[2]?.port ?? 0
      await start({ selector: 'app=engines', ports: [port, third] })
      expect(pods()).toEqual({ [at(0)]: true, [at(0, third)]: true })
    })

    test('reads the model and the LMCache instance from labels', async () => {
      const [first] = bedOf().hosts
      await bedOf().put(paths.pods, podOf('a', first, true, { 'example.com/model': 'small', shelf: 'lm-1' }))
      await start({ selector: 'app=engines', ports: [port], modelLabel: 'example.com/model', instanceLabel: 'shelf' })
      expect(source?.pods()).toMatchObject([{ models: { names: new Set(['small']) }, instance: 'lm-1' }])
    })
  })

  test('a service: its slices, without endpoints that end', async () => {
    const [first, second] = bedOf().hosts
    const going = { addresses: [second], conditions: { ready: false, serving: true, terminating: true } }
    await bedOf().put(paths.slices, sliceOf('engines-1', port, [{ addresses: [first] }, going]))
    await start({ service: 'engines', modelLabel: 'model' })
    expect(pods()).toEqual({ [at(0)]: true })
    expect(source?.pods()[0]?.models?.names).toEqual(new Set(['small']))
    const unready = { addresses: [second], conditions: { ready: false } }
    await bedOf().put(paths.slices, sliceOf('engines-2', port, [unready]))
    await eventually(() => expect(pods()).toEqual({ [at(0)]: true, [at(1)]: false }))
    await bedOf().remove(paths.slices, 'engines-1')
    await eventually(() => expect(pods()).toEqual({ [at(1)]: false }))
  })

  test('pods that speak HTTP/2 alone are ready by the word of Kubernetes', async () => {
    const closed = 9
    await bedOf().put(paths.pods, podOf('a', bedOf().hosts[0], true))
    await bedOf().put(paths.pools, poolOf({ app: 'engines' }, [closed], { appProtocol: 'kubernetes.io/h2c' }))
    await start({ inferencePool: 'engines' })
    await eventually(() => expect(pods()).toEqual({ [at(0, closed)]: true }))
  })

  test('an InferencePool: its selector and ports, also when they change', async () => {
    const [first, second] = bedOf().hosts
    await bedOf().put(paths.pods, podOf('a', first, true))
    await bedOf().put(paths.pods, podOf('b', second, true, { app: 'others' }))
    await start({ inferencePool: 'engines' })
    expect(pods()).toEqual({})
    await bedOf().put(paths.pools, poolOf({ app: 'engines' }, [port]))
    await eventually(() => expect(pods()).toEqual({ [at(0)]: true }))
    await bedOf().put(paths.pools, poolOf({ app: 'others' }, [port]))
    await eventually(() => expect(pods()).toEqual({ [at(1)]: true }))
    await bedOf().remove(paths.pools, 'engines')
    await eventually(() => expect(pods()).toEqual({}))
  })
}
