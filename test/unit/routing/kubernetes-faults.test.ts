import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { createKubernetesPodSource } from '../../../src/routing/kubernetes/kubernetes-pod-source.ts'
import type { PodSource } from '../../../src/routing/pod.ts'
import type { PodChange } from '../../../src/routing/pod-monitor.ts'
import { paths, podOf, poolOf, writeKubeconfig } from '../../contract/routing/kubernetes-pods.ts'
import { eventually } from '../../support/eventually.ts'
import { type ApiBehaviour, type FakeApiServer, startFakeApiServer } from '../../support/fake-api-server.ts'
import { type FakeEngine, startFakeEngine } from '../../support/fake-engine.ts'

let folder: string
let api: FakeApiServer
let engine: FakeEngine
let source: PodSource
let changes: PodChange[]

const createSource = async (timeoutMs: number, inferencePool?: string): Promise<PodSource> =>
  createKubernetesPodSource({
    healthIntervalMs: 10,
    healthTimeoutMs: 10_000,
    turnLeaseMs: 60_000,
    onChange: (change) => void changes.push(change),
    ...(inferencePool === undefined ? { selector: 'app=engines' } : { inferencePool }),
    ports: [engine.port],
    resyncMs: 1_000,
    timeoutMs,
    kubeconfigFile: await writeKubeconfig(
      { cluster: { server: api.url, 'insecure-skip-tls-verify': true }, token: 'token' },
      folder,
    ),
  })

beforeEach(async () => {
  // A pause between two lists is half of its longest and a random part of the other half: here next to nothing.
  jest.spyOn(Math, 'random').mockReturnValue(-0.98)
  folder = await mkdtemp(join(tmpdir(), 'kubernetes-'))
  api = await startFakeApiServer()
  engine = await startFakeEngine()
  changes = []
  source = await createSource(60_000)
})
afterEach(async () => {
  await source.stop()
  await api.stop()
  await engine.stop()
  await rm(folder, { recursive: true })
  jest.restoreAllMocks()
})

const hosts = (): readonly string[] => source.pods().map(({ address }) => address.slice(0, address.indexOf(':')))
const listChanges = () => changes.filter(({ kind }) => kind.startsWith('list-'))
const put = (name: string, host: string): void => api.put(paths.pods, podOf(name, host, true))

const started = async (): Promise<void> => {
  put('a', '127.0.0.1')
  await source.start()
  await eventually(() => expect(api.watches()).toBe(1))
}

test.each<[ApiBehaviour, number, string]>([
  ['is broken', 60_000, `GET ${paths.pods}?labelSelector=app%3Dengines&limit=25 answered 503`],
  ['hangs', 1_000, 'no answer within 1000 ms'],
])('an API server that %s: the known pods stay, and it is said once', async (behaviour, timeoutMs, reason) => {
  source = await createSource(timeoutMs)
  await started()
  api.behave(behaviour)
  api.cutWatches()
  put('b', '127.0.0.2')
  await eventually(() => expect(listChanges()).toHaveLength(1))
  const lists = api.lists()
  await eventually(() => expect(api.lists()).toBeGreaterThan(lists))
  expect(listChanges()).toEqual([{ kind: 'list-stale', name: 'pods', reason }])
  expect(source.pods()).toMatchObject([{ address: engine.address, ready: true }])
  api.behave('well')
  await eventually(() => expect(hosts()).toEqual(['127.0.0.1', '127.0.0.2']))
  await eventually(() => expect(listChanges().at(-1)).toEqual({ kind: 'list-current', name: 'pods' }))
})

test.each<[string, () => void]>([
  ['that is cut', () => api.cutWatches()],
  ['whose version is too old', () => api.expireWatches()],
])('after a watch %s the pods are listed again, without a word', async (_title, end) => {
  await started()
  end()
  put('b', '127.0.0.2')
  await eventually(() => expect(hosts()).toEqual(['127.0.0.1', '127.0.0.2']))
  put('c', '127.0.0.3')
  await eventually(() => expect(hosts()).toHaveLength(3))
  expect(listChanges()).toEqual([])
})

test('a list of pods that ends with its InferencePool is stale no longer', async () => {
  source = await createSource(60_000, 'engines')
  api.put(paths.pools, poolOf({ app: 'engines' }, [engine.port]))
  await source.start()
  await eventually(() => expect(api.watches()).toBe(2))
  api.behave('is broken')
  api.put(paths.pools, poolOf({ app: 'others' }, [engine.port]))
  await eventually(() => expect(listChanges().at(-1)).toMatchObject({ kind: 'list-stale', name: 'pods' }))
  api.remove(paths.pools, 'engines')
  await eventually(() => expect(listChanges().at(-1)).toEqual({ kind: 'list-current', name: 'pods' }))
})

test('a change that a watch lost is seen with the next list', async () => {
  await started()
  api.behave('says nothing of changes')
  put('b', '127.0.0.2')
  await eventually(() => expect(hosts()).toEqual(['127.0.0.1', '127.0.0.2']))
})

test('a list of several pages has all pods', async () => {
  for (let at = 1; at <= 30; at += 1) put(`pod-${at}`, `127.0.0.${at}`)
  await source.start()
  expect(hosts()).toHaveLength(30)
  expect(api.lists()).toBe(2)
})

test('a missing right to watch is reported, and lists still show changes', async () => {
  api.behave('forbids watches')
  await source.start()
  put('a', '127.0.0.1')
  await eventually(() => expect(hosts()).toEqual(['127.0.0.1']))
  expect(listChanges()).toMatchObject([{ kind: 'list-stale', reason: expect.stringContaining('answered 403') }])
})

test('starts without pods when the API server is not there, and finds them later', async () => {
  api.behave('is broken')
  put('a', '127.0.0.1')
  await source.start()
  expect(hosts()).toEqual([])
  api.behave('well')
  await eventually(() => expect(source.pods()).toMatchObject([{ ready: true }]))
})

test('says what to do where there is no way to an API server', async () => {
  const base = { healthIntervalMs: 1, healthTimeoutMs: 1, turnLeaseMs: 1, onChange: () => undefined, ports: [] }
  await expect(createKubernetesPodSource({ ...base, service: 'a', resyncMs: 1, timeoutMs: 1 })).rejects.toThrow(
    'set routing.kubernetes.kubeconfigFile',
  )
})
