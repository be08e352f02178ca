import type { LookupAddress } from 'node:dns'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createDnsPodSource, type ResolveName } from '../../../src/routing/dns-pod-source.ts'
import type { PodSource } from '../../../src/routing/pod.ts'
import type { PodChange } from '../../../src/routing/pod-monitor.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeEngine, startFakeEngine } from './fake-engine.ts'

const ipv4 = (...addresses: readonly string[]): LookupAddress[] => addresses.map((address) => ({ address, family: 4 }))

describe('createDnsPodSource', () => {
  let engine: FakeEngine
  let changes: PodChange[]
  let answer: () => Promise<readonly LookupAddress[]>
  let asked: string[]
  let source: PodSource

  const createSource = (options: {
    readonly resolve?: ResolveName
    readonly name?: string
    readonly lookupTimeoutMs?: number
  }) =>
    createDnsPodSource({
      name: 'pods.example',
      port: engine.port,
      refreshIntervalMs: 5,
      lookupTimeoutMs: 10_000,
      healthIntervalMs: 5,
      healthTimeoutMs: 10_000,
      turnLeaseMs: 60_000,
      onChange: (change) => void changes.push(change),
      ...options,
    })

  beforeEach(async () => {
    engine = await startFakeEngine()
    changes = []
    asked = []
    answer = async () => ipv4('127.0.0.1')
    source = createSource({
      resolve: (name) => {
        asked.push(name)
        return answer()
      },
    })
  })

  afterEach(async () => {
    await source.stop()
    await engine.stop()
  })

  const addresses = (): readonly string[] => source.pods().map((pod) => pod.address)
  const failures = (): readonly PodChange[] => changes.filter((change) => change.kind === 'resolve-failed')

  test('knows the pods behind the name, and which are ready, once it has started', async () => {
    await source.start()
    expect(asked[0]).toBe('pods.example')
    expect(source.pods()).toMatchObject([{ address: `127.0.0.1:${engine.port}`, ready: true }])
  })

  test('follows the name', async () => {
    await source.start()
    answer = async () => ipv4('127.0.0.3', '127.0.0.1', '127.0.0.3')
    await eventually(() => expect(addresses()).toEqual([`127.0.0.1:${engine.port}`, `127.0.0.3:${engine.port}`]))
    answer = async () => ipv4('127.0.0.3')
    await eventually(() => expect(addresses()).toEqual([`127.0.0.3:${engine.port}`]))
  })

  test.each([
    {
      name: 'IPv4 goes before IPv6, which means the same pods',
      found: [{ address: '::1', family: 6 }, ...ipv4('127.0.0.1')],
      hosts: ['127.0.0.1'],
    },
    { name: 'IPv6 alone', found: [{ address: '::1', family: 6 }], hosts: ['[::1]'] },
    { name: 'no address at all', found: [], hosts: [] },
  ])('$name', async ({ found, hosts }) => {
    answer = async () => found
    await source.start()
    expect(addresses()).toEqual(hosts.map((host) => `${host}:${engine.port}`))
  })

  test('keeps its pods while the name cannot be resolved and reports it once', async () => {
    await source.start()
    answer = () => Promise.reject(Object.assign(new Error('queryA'), { code: 'EAI_AGAIN' }))
    await eventually(() => expect(failures()).toHaveLength(1))
    const askedBefore = asked.length
    await eventually(() => expect(asked.length).toBeGreaterThan(askedBefore + 2))
    expect(failures()).toEqual([{ kind: 'resolve-failed', name: 'pods.example', reason: 'EAI_AGAIN' }])
    expect(source.pods()).toMatchObject([{ address: `127.0.0.1:${engine.port}`, ready: true }])

    answer = async () => ipv4('127.0.0.3')
    await eventually(() => expect(addresses()).toEqual([`127.0.0.3:${engine.port}`]))
    answer = () => Promise.reject(new Error('broken'))
    await eventually(() => expect(failures()).toHaveLength(2))
    expect(failures().at(-1)).toMatchObject({ reason: 'broken' })
  })

  test('starts without pods when the name cannot be resolved, and finds them later', async () => {
    answer = () => Promise.reject(new Error('broken'))
    await source.start()
    expect(source.pods()).toEqual([])
    answer = async () => ipv4('127.0.0.1')
    await eventually(() => expect(source.pods()).toMatchObject([{ ready: true }]))
  })

  test('does not wait for a resolver that does not answer', async () => {
    source = createSource({ resolve: () => new Promise(() => undefined), lookupTimeoutMs: 20 })
    await source.start()
    expect(failures()).toEqual([{ kind: 'resolve-failed', name: 'pods.example', reason: 'no answer within 20 ms' }])
  })

  test('stops in the middle of a look-up', async () => {
    answer = () => new Promise(() => undefined)
    const starting = source.start()
    await source.stop()
    await starting
    expect(changes).toEqual([])
  })

  test('uses the system resolver by default', async () => {
    source = createSource({ name: 'localhost' })
    await source.start()
    expect(source.pods()).toMatchObject([{ address: `127.0.0.1:${engine.port}`, ready: true }])
  })
})
