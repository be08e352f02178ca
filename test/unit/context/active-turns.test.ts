import { setImmediate } from 'node:timers/promises'
import { describe, expect, jest, test } from '@jest/globals'
import type { ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import {
  type ContextGateway,
  createContextGateway,
  podA,
  promptBody,
  type SentRequest,
} from '../../support/context-gateway.ts'
import { forwarded, ticketOf } from '../../support/decisions.ts'
import { eventually } from '../../support/eventually.ts'
import { watchedScope } from '../../support/gateway-request.ts'
import { createLatch } from '../../support/latch.ts'
import { admissionBy, planOf } from '../../support/planned-admission.ts'
import { usedBytes } from '../../support/used-bytes.ts'

const createBench = () => {
  const admission = admissionBy(planOf({ requirements: ['prefill=R1:1'], resources: ['R1:2'] }, [podA]))
  const gateway = createContextGateway({ pods: [podA], admission })
  return {
    gateway,
    /** Everything that a turn holds. */
    held: () => ({
      onPod: gateway.pods.running(podA),
      inPrediction: gateway.predictor.pods().map(({ prefillBacklogMs }) => prefillBacklogMs ?? 0),
      claims: gateway.connector.claims().length,
      admitted: admission.usage([podA]).map(({ inUse }) => inUse),
    }),
    outcomes: () => gateway.events.of('turnEnded').map(([outcome]) => outcome),
  }
}

const nothing = { onPod: 0, inPrediction: [0], claims: 0, admitted: [0] }
const something = { onPod: 1, claims: 1, admitted: [1] }

const withKey = (key: string) => ({ 'x-context-request-key': key })
const create = (key: string): SentRequest => ({ path: '/v1/context', body: promptBody, headers: withKey(key) })

describe('a client that disconnects before Envoy reads the decision', () => {
  test.each<{ name: string; request: SentRequest; session: boolean }>([
    { name: 'a turn', request: { path: '/v1/completions' }, session: true },
    { name: 'a create', request: { path: '/v1/context', body: promptBody }, session: false },
    {
      name: 'a turn of an unknown session',
      request: { path: '/v1/completions', headers: { 'x-session-id': `ctx_${'a'.repeat(32)}` } },
      session: false,
    },
  ])('leaves nothing of $name', async ({ request, session }) => {
    const { gateway, held, outcomes } = createBench()
    const id = session ? (await gateway.create({ headers: { 'x-session-ttl': '60' } })).id : undefined
    const headers = { ...(id === undefined ? {} : { 'x-session-id': id }), ...request.headers, ...withKey('k1') }
    forwarded(await gateway.send({ ...request, headers }))
    expect(held()).toMatchObject({ onPod: 1, admitted: [1] })

    await gateway.service.clientDisconnected('k1')

    expect(held()).toEqual(nothing)
    expect(outcomes().at(-1)).toBe('client_left')
    if (id !== undefined)
      expect(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).toMatchObject({ body: { turns: 1 } })
    await gateway.sweep(60)
    expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
  })

  test('ends its turn when reported before the decision is made', async () => {
    const { gateway, held, outcomes } = createBench()
    const { id } = await gateway.create()
    gateway.fleet.restart(podA)
    gateway.connector.faults.holdLoads(true)
    const turn = gateway.use(id, { headers: withKey('k1') })
    await eventually(() => gateway.connector.loads() === 1)

    await gateway.service.clientDisconnected('k1')
    gateway.connector.faults.holdLoads(false)
    await turn

    await eventually(() => outcomes().includes('client_left'))
    await eventually(() => held().claims === 0)
    expect(held()).toEqual(nothing)
  })

  test('ends no other turn', async () => {
    const { gateway, held } = createBench()
    forwarded(await gateway.send(create('k1')))
    await gateway.service.clientDisconnected('k2')
    expect(held()).toMatchObject(something)
  })

  test('changes nothing when its request was rejected or cancelled', async () => {
    const { gateway, held, outcomes } = createBench()
    gateway.store.breakDown('all')
    expect((await gateway.send(create('k1'))).kind).toBe('reject')
    await gateway.service.clientDisconnected('k1')
    gateway.store.breakDown([])
    const scope = watchedScope()
    scope.leave()
    expect((await gateway.send(create('k2'), scope)).kind).toBe('cancelled')
    await gateway.service.clientDisconnected('k2')
    expect(held()).toEqual(nothing)
    expect(outcomes()).toEqual([])
  })
})

describe('a turn', () => {
  type Step = 'decided' | 'left' | 'ended'
  /** Reports these events of one turn in this order. */
  const run = async (order: readonly Step[]) => {
    const { gateway, held, outcomes } = createBench()
    const { id } = await gateway.create()
    const decide = (by: ContextGateway) => by.use(id, { headers: withKey('k1') })
    let forward: ForwardDecision | undefined
    for (const step of order) {
      switch (step) {
        case 'decided':
          forward = await decide(gateway)
          break
        case 'left':
          await gateway.service.clientDisconnected('k1')
          break
        case 'ended':
          // Without a decision here, another process made it.
          forward ??= await decide(createContextGateway({ pods: [podA], beside: gateway }))
          await gateway.serve(forward, { promptTokens: 700 })
          break
      }
    }
    await gateway.drain()
    expect(held()).toEqual(nothing)
    return { gateway, outcomes: outcomes().slice(1) }
  }

  test.each<readonly [readonly Step[], ...('client_left' | 'completed')[]]>([
    [['decided', 'ended'], 'completed'],
    [['decided', 'ended', 'ended'], 'completed'],
    [['decided', 'ended', 'left', 'left', 'ended'], 'completed'],
    [['decided', 'left'], 'client_left'],
    [['decided', 'left', 'left'], 'client_left'],
    [['decided', 'left', 'ended', 'ended'], 'client_left'],
    [['left', 'decided'], 'client_left'],
    [['left', 'left', 'decided', 'ended', 'left'], 'client_left'],
    [['ended'], 'completed'],
    [['ended', 'ended'], 'completed'],
    // Envoy reads one decision of a request that it asks about twice.
    [['decided', 'decided', 'ended', 'ended'], 'client_left', 'completed'],
    [['decided', 'decided', 'left'], 'client_left', 'client_left'],
    [['decided', 'ended', 'decided'], 'completed', 'client_left'],
  ])('ends once after %j', async (order, ...outcomes) => {
    expect((await run(order)).outcomes).toEqual(outcomes)
  })

  test('counts its tokens once and offloads once when its end is reported twice', async () => {
    const { gateway } = await run(['decided', 'ended', 'ended'])

    expect(gateway.events.of('turnEnded').map(([, tokens]) => tokens?.promptTokens)).toEqual([1000, 700])
    expect(gateway.events.of('offloaded')).toHaveLength(2)
  })

  test.each([
    { name: 'an empty key', key: '' },
    { name: 'a key that is no word', key: 'a b' },
    { name: 'a key that is too long', key: 'k'.repeat(58) },
  ])('of a request with $name has a random id', async ({ key }) => {
    const gateway = createContextGateway({ pods: [podA] })
    const headers = withKey(key)
    const { id } = await gateway.create()

    const [first, second] = [await gateway.use(id, { headers }), await gateway.use(id, { headers })]

    expect(ticketOf(first).turnId).not.toBe(ticketOf(second).turnId)
    await gateway.service.clientDisconnected(key)
    expect(gateway.pods.running(podA)).toBe(2)
  })
})

test('a turn is forgotten with its lease, since its end may have been reported to another gateway', async () => {
  const { gateway, outcomes } = createBench()
  forwarded(await gateway.send(create('k1')))
  const realNow = performance.now.bind(performance)
  const now = jest.spyOn(performance, 'now').mockImplementation(() => realNow() + 600_000)
  try {
    await gateway.service.clientDisconnected('k1')
  } finally {
    now.mockRestore()
  }
  expect(outcomes()).toEqual([])
})

test('keys that a peer makes up take little memory', async () => {
  const { gateway } = createBench()
  const longText = 'x'.repeat(1024 * 1024)
  const before = usedBytes()

  for (let index = 0; index < 64; index += 1) {
    const [key = '', rest = ''] = `a-key-of-a-client-${index} ${index}${longText}`.split(' ')
    await gateway.service.clientDisconnected(key)
    await gateway.service.clientDisconnected(rest)
  }

  expect(usedBytes() - before).toBeLessThan(16 * 1024 * 1024)
})

describe('draining', () => {
  test('resolves at once when no end of a turn is processed', async () => {
    await expect(createBench().gateway.drain()).resolves.toBeUndefined()
  })

  test('waits for the ends of turns that are being processed', async () => {
    const { gateway, outcomes } = createBench()
    const forward = forwarded(await gateway.send(create('k1')))
    const completion = createLatch()
    gateway.store.before('complete', () => completion.opened)
    const ending = gateway.serve(forward)
    let isDrained = false
    const drained = gateway.drain().then(() => {
      isDrained = true
    })
    await setImmediate()
    const before = isDrained

    completion.open()
    await Promise.all([drained, ending])

    expect(before).toBe(false)
    expect(outcomes()).toEqual(['completed'])
  })
})
