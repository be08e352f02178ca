import { describe, expect, test } from '@jest/globals'
import { createAdmission } from '../../../src/admission/admission.ts'
import { planAdmission } from '../../../src/admission/plan/plan-admission.ts'
import type { Decision } from '../../../src/context/context-cache-manager.ts'
import { createOpenTurns } from '../../../src/context/open-turns.ts'
import { encodeTicket, type TurnTicket } from '../../../src/context/turn-ticket.ts'
import { createContextGateway, podA, promptBody, type SentRequest } from '../../support/context-gateway.ts'
import { forwarded, ticketOf } from '../../support/decisions.ts'
import { watchedScope } from '../../support/gateway-request.ts'
import { wholeAnswer } from '../../support/turn-end.ts'
import { until } from '../../support/until.ts'

const createBench = () => {
  const settings = { requirements: ['prefill=R1:1'], resources: [], globalResources: [], priorities: [] }
  const planned = planAdmission({ ...settings, defaultPriority: 1 }, [podA])
  if (planned.kind !== 'planned') throw new Error(planned.kind)
  const admission = createAdmission({
    plan: planned.plan,
    maxWaiting: 10,
    maxWaitMs: 20_000,
    leaseMs: 600_000,
    nowMs: () => performance.now(),
    events: { settled: () => {}, leaseExpired: () => {} },
  })
  const gateway = createContextGateway({ pods: [podA], admission })
  return {
    gateway,
    /** Everything that a turn holds. */
    held: () => ({
      onPod: gateway.pods.running(podA),
      inForecast: gateway.forecast.pods().map(({ prefillBacklogMs }) => prefillBacklogMs ?? 0),
      claims: gateway.connector.claims().length,
      admitted: admission.usage([podA]).map(({ inUse }) => inUse),
    }),
    outcomes: () => gateway.events.of('turnEnded').map(([outcome]) => outcome),
  }
}

const nothing = { onPod: 0, inForecast: [0], claims: 0, admitted: [0] }
const something = { onPod: 1, claims: 1, admitted: [1] }

const withKey = (key: string) => ({ 'x-context-request-key': key })
const create = (key: string): SentRequest => ({ path: '/v1/context', body: promptBody, headers: withKey(key) })

describe('a client that left before Envoy had read the decision', () => {
  test('leaves nothing of a turn, and its session as it was', async () => {
    const { gateway, held, outcomes } = createBench()
    const { id } = await gateway.create({ headers: { 'x-session-ttl': '60' } })
    await gateway.use(id, { headers: withKey('k1') })
    expect(held()).toMatchObject(something)

    await gateway.service.clientDisconnected('k1')

    expect(held()).toEqual(nothing)
    expect(outcomes()).toEqual(['completed', 'client_left'])
    expect(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).toMatchObject({ body: { turns: 1 } })
    gateway.advance(60)
    await gateway.reaper.sweep()
    expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
  })

  test('leaves nothing of a create', async () => {
    const { gateway, held, outcomes } = createBench()
    forwarded(await gateway.send(create('k1')))

    await gateway.service.clientDisconnected('k1')
    await gateway.reaper.sweep()

    expect(held()).toEqual(nothing)
    expect(outcomes()).toEqual(['client_left'])
    expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
  })

  test('leaves nothing of a turn without a session', async () => {
    const { gateway, held, outcomes } = createBench()
    await gateway.use(`ctx_${'a'.repeat(32)}`, { headers: withKey('k1') })

    await gateway.service.clientDisconnected('k1')

    expect(held()).toEqual(nothing)
    expect(outcomes()).toEqual(['client_left'])
  })

  test('may be told of before the decision is taken', async () => {
    const { gateway, held, outcomes } = createBench()
    const { id } = await gateway.create()
    gateway.fleet.restart(podA)
    gateway.connector.faults.holdLoads(true)
    const turn = gateway.use(id, { headers: withKey('k1') })
    await until(() => gateway.connector.loads() === 1)

    await gateway.service.clientDisconnected('k1')
    gateway.connector.faults.holdLoads(false)
    await turn

    await until(() => outcomes().includes('client_left'))
    await until(() => held().claims === 0)
    expect(held()).toEqual(nothing)
  })

  test('ends no other turn', async () => {
    const { gateway, held } = createBench()
    forwarded(await gateway.send(create('k1')))
    await gateway.service.clientDisconnected('k2')
    expect(held()).toMatchObject(something)
  })

  test('may have been refused, or be given up while the decision is taken', async () => {
    const { gateway, held, outcomes } = createBench()
    gateway.store.breakDown('all')
    expect((await gateway.send(create('k1'))).kind).toBe('reject')
    await gateway.service.clientDisconnected('k1')
    gateway.store.breakDown([])
    const scope = watchedScope()
    scope.leave()
    expect((await gateway.send(create('k2'), scope)).kind).toBe('reject')
    await gateway.service.clientDisconnected('k2')
    expect(held()).toEqual(nothing)
    expect(outcomes()).toEqual([])
  })
})

describe('however a turn ends, it ends once', () => {
  const ticket: TurnTicket = { turnId: 't1', pod: podA, session: undefined }
  const decision: Decision = {
    kind: 'forward',
    destinations: [podA],
    path: undefined,
    requestHeaders: {},
    splice: undefined,
    expectModel: undefined,
    responseHeaders: {},
    ticket,
  }
  type Step = 'decided' | 'left' | 'ended'
  const run = async (order: readonly Step[]) => {
    const ends: string[] = []
    const turns = createOpenTurns(async ({ turnId }, { clientDisconnected }) => {
      ends.push(`${turnId} ${clientDisconnected ? 'left' : 'ended'}`)
    })
    for (const step of order) {
      if (step === 'decided') turns.decided(decision)
      else if (step === 'left') await turns.clientDisconnected('t1')
      else await turns.endTurn({ ...wholeAnswer, ticket: encodeTicket(ticket) })
    }
    return ends
  }

  test.each<readonly [readonly Step[], 'left' | 'ended']>([
    [['decided', 'ended'], 'ended'],
    [['decided', 'ended', 'left', 'left'], 'ended'],
    [['decided', 'left'], 'left'],
    [['decided', 'left', 'left'], 'left'],
    [['decided', 'left', 'ended', 'ended'], 'left'],
    [['left', 'decided'], 'left'],
    [['left', 'left', 'decided', 'ended', 'left'], 'left'],
  ])('%j', async (order, how) => {
    expect(await run(order)).toEqual([`t1 ${how}`])
  })

  test('a turn that another process began ends as it is told', async () => {
    expect(await run(['ended'])).toEqual(['t1 ended'])
  })

  test.each([
    { name: 'an empty key', key: '' },
    { name: 'a key that is no word', key: 'a b' },
    { name: 'a key that is too long', key: 'k'.repeat(65) },
  ])('a request with $name gets a turn that nobody can name', async ({ key }) => {
    const gateway = createContextGateway({ pods: [podA] })
    const headers = withKey(key)
    const { id } = await gateway.create()

    const [first, second] = [await gateway.use(id, { headers }), await gateway.use(id, { headers })]

    expect(ticketOf(first).turnId).not.toBe(ticketOf(second).turnId)
    await gateway.service.clientDisconnected(key)
    expect(gateway.pods.running(podA)).toBe(2)
  })
})
