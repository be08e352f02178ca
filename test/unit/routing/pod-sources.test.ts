import type { LookupAddress } from 'node:dns'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { createDnsPodSource, type ResolveName } from '../../../src/routing/dns-pod-source.ts'
import type { PodSource } from '../../../src/routing/pod.ts'
import type { PodChange } from '../../../src/routing/pod-monitor.ts'
import { createStaticPodSource } from '../../../src/routing/static-pod-source.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeEngine, startFakeEngine } from '../../support/fake-engine.ts'

let engine: FakeEngine
let changes: PodChange[]
let source: PodSource | undefined

beforeEach(async () => {
  engine = await startFakeEngine()
  changes = []
})

afterEach(async () => {
  await source?.stop()
  await engine.stop()
})

const options = {
  healthIntervalMs: 5,
  healthTimeoutMs: 10_000,
  turnLeaseMs: 60_000,
  onChange: (change: PodChange) => void changes.push(change),
}

const addresses = (): readonly string[] | undefined => source?.pods().map((pod) => pod.address)
const readyPods = () =>
  source
    ?.pods()
    .filter((pod) => pod.ready)
    .map((pod) => pod.address)

describe('createStaticPodSource', () => {
  test('knows which pods are ready once it has started', async () => {
    const broken = await startFakeEngine()
    broken.behave('/health', { status: 503 })
    source = createStaticPodSource({ ...options, addresses: () => [engine.address, broken.address] })
    expect(addresses()).toEqual([])
    await source.start()
    expect(addresses()).toEqual([engine.address, broken.address])
    expect(readyPods()).toEqual([engine.address])
    await broken.stop()
  })

  test.each([
    ['a host name, by IPv4 first', 'localhost', '127.0.0.1'],
    ['IPv6', '[::ffff:127.0.0.1]', '[::ffff:127.0.0.1]'],
  ])('takes %s', async (_title, host, written) => {
    source = createStaticPodSource({
      ...options,
      addresses: () => [`${host}:${engine.port}`, `${written}:${engine.port}`],
    })
    await source.start()
    expect(addresses()).toEqual([`${written}:${engine.port}`])
  })

  test('a name without an address is no pod to serve, however healthy, until it has one', async () => {
    const name = `localhost:${engine.port}`
    const resolve = jest.fn<(host: string) => Promise<LookupAddress>>().mockReturnValue(new Promise(() => undefined))
    source = createStaticPodSource({ ...options, addresses: () => [name], resolve, lookupTimeoutMs: 20 })
    await source.start()
    await eventually(() => expect(resolve.mock.calls.length).toBeGreaterThan(2))
    expect(source.pods()).toMatchObject([{ address: name, ready: false }])
    expect(engine.requests('/health')).toBe(0)
    expect(changes).toEqual([
      { kind: 'resolve-failed', name: 'localhost', reason: 'no answer within 20 ms' },
      { kind: 'added', address: name },
    ])
    resolve.mockResolvedValue({ address: '127.0.0.1', family: 4 })
    await eventually(() => expect(readyPods()).toEqual([engine.address]))
    expect(addresses()).toEqual([engine.address])
  })

  test('sends no checks after stop', async () => {
    source = createStaticPodSource({ ...options, addresses: () => [engine.address] })
    await source.start()
    await source.stop()
    const asked = engine.requests('/health')
    await new Promise((resolve) => setImmediate(resolve))
    expect(engine.requests('/health')).toBe(asked)
  })
})

describe('createDnsPodSource', () => {
  const ipv4 = (...hosts: readonly string[]): LookupAddress[] => hosts.map((address) => ({ address, family: 4 }))
  const ipv6: LookupAddress = { address: '::1', family: 6 }
  const at = (...hosts: readonly string[]): readonly string[] => hosts.map((host) => `${host}:${engine.port}`)
  const failures = (): readonly PodChange[] => changes.filter((change) => change.kind === 'resolve-failed')

  let answer: () => Promise<readonly LookupAddress[]>
  let asked: string[]

  const startSource = async (change: Partial<Parameters<typeof createDnsPodSource>[0]> = {}): Promise<void> => {
    const resolve: ResolveName = (name) => {
      asked.push(name)
      return answer()
    }
    source = createDnsPodSource({
      ...options,
      name: 'pods.example',
      port: engine.port,
      refreshIntervalMs: 5,
      lookupTimeoutMs: 10_000,
      resolve,
      ...change,
    })
    await source.start()
  }

  beforeEach(() => {
    asked = []
    answer = async () => ipv4('127.0.0.1')
  })

  test('adds and removes pods as the addresses of the name change', async () => {
    await startSource()
    expect(asked[0]).toBe('pods.example')
    expect(readyPods()).toEqual(at('127.0.0.1'))
    answer = async () => ipv4('127.0.0.3', '127.0.0.1', '127.0.0.3')
    await eventually(() => expect(addresses()).toEqual(at('127.0.0.1', '127.0.0.3')))
    answer = async () => ipv4('127.0.0.3')
    await eventually(() => expect(addresses()).toEqual(at('127.0.0.3')))
  })

  test.each([
    ['IPv4 only of a name with both families', [ipv6, ...ipv4('127.0.0.1')], ['127.0.0.1']],
    ['IPv6 of a name without IPv4', [ipv6], ['[::1]']],
    ['no pod of a name without addresses', [], []],
  ])('takes %s', async (_title, found, hosts) => {
    answer = async () => found
    await startSource()
    expect(addresses()).toEqual(at(...hosts))
  })

  test('keeps its pods while the name cannot be resolved and reports it once', async () => {
    await startSource()
    answer = () => Promise.reject(Object.assign(new Error('queryA'), { code: 'EAI_AGAIN' }))
    await eventually(() => expect(failures()).toHaveLength(1))
    const askedBefore = asked.length
    await eventually(() => expect(asked.length).toBeGreaterThan(askedBefore + 2))
    expect(failures()).toEqual([{ kind: 'resolve-failed', name: 'pods.example', reason: 'EAI_AGAIN' }])
    expect(readyPods()).toEqual(at('127.0.0.1'))

    answer = async () => ipv4('127.0.0.3')
    await eventually(() => expect(addresses()).toEqual(at('127.0.0.3')))
    answer = () => Promise.reject(new Error('broken'))
    await eventually(() => expect(failures()).toHaveLength(2))
    expect(failures().at(-1)).toMatchObject({ reason: 'broken' })
  })

  test('starts without pods when the name cannot be resolved, and finds them later', async () => {
    answer = () => Promise.reject(new Error('broken'))
    await startSource()
    expect(addresses()).toEqual([])
    answer = async () => ipv4('127.0.0.1')
    await eventually(() => expect(readyPods()).toEqual(at('127.0.0.1')))
  })

  test('does not wait for a resolver that does not answer', async () => {
    answer = () => new Promise(() => undefined)
    await startSource({ lookupTimeoutMs: 20 })
    expect(failures()).toEqual([{ kind: 'resolve-failed', name: 'pods.example', reason: 'no answer within 20 ms' }])
  })

  test('stops in the middle of a look-up', async () => {
    answer = () => new Promise(() => undefined)
    const starting = startSource()
    await source?.stop()
    await starting
    expect(changes).toEqual([])
  })

  test('uses the resolver of the system by default', async () => {
    await startSource({ name: 'localhost', resolve: undefined })
    expect(readyPods()).toEqual(at('127.0.0.1'))
  })
})
