import { describe, expect, test } from '@jest/globals'
import { type Admission, createAdmission } from '../../../src/admission/admission.ts'
import { planAdmission } from '../../../src/admission/plan/plan-admission.ts'
import type { ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { newSessionId } from '../../../src/context/session-id.ts'
import { toErrorResponse } from '../../../src/openai/gateway-error.ts'
import { type ContextGateway, createContextGateway, podA, podB, promptBody } from '../../support/context-gateway.ts'
import { forwarded, rejection, ticketOf } from '../../support/decisions.ts'
import { eventually } from '../../support/eventually.ts'
import { watchedScope } from '../../support/gateway-request.ts'

const setUp = (
  requirements: readonly string[],
  given: { readonly maxWaiting?: number; readonly maxWaitMs?: number; readonly pods?: readonly string[] } = {},
) => {
  const pods = given.pods ?? [podA]
  const settings = { requirements, resources: [], globalResources: [], priorities: [], defaultPriority: 1 }
  const outcome = planAdmission(settings, pods)
  if (outcome.kind !== 'planned') throw new Error(outcome.kind)
  const admission = createAdmission({
    plan: outcome.plan,
    maxWaiting: given.maxWaiting ?? 10,
    maxWaitMs: given.maxWaitMs ?? 20_000,
    leaseMs: 600_000,
    nowMs: () => performance.now(),
    events: { settled: () => {}, leaseExpired: () => {} },
  })
  return { admission, gateway: createContextGateway({ pods, admission }) }
}

const create = { path: '/v1/context', body: promptBody }

const inUse = (admission: Admission): readonly number[] => admission.usage([podA]).map((usage) => usage.inUse)

describe('a turn', () => {
  test('holds what it requires until its end is reported', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    const turn = forwarded(await gateway.send(create))
    expect(inUse(admission)).toEqual([1])
    await gateway.serve(turn)
    expect(inUse(admission)).toEqual([0])
  })

  test.each([
    { name: 'failed', told: { status: 500 } },
    { name: 'lost its client', told: { complete: false, clientDisconnected: true } },
    { name: 'was served elsewhere', told: { servedBy: podB } },
    { name: 'was served by nobody', told: { servedBy: null, status: 503, upstreamFailed: true } },
  ])('frees its resources when it $name', async ({ told }) => {
    const { admission, gateway } = setUp(['prefill=R1:1'], { pods: [podA, podB] })
    const turn = forwarded(await gateway.send(create))
    await gateway.serve(turn, told)
    expect(admission.usage([podA, podB]).map((usage) => usage.inUse)).toEqual([0, 0])
  })

  test('counts neither on its pod nor in the prediction while it waits, and runs when the one before ends', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    const first = forwarded(await gateway.send(create))
    const backlog = () => gateway.predictor.pods().map((pod) => pod.prefillBacklogMs ?? 0)
    const before = gateway.predictor.pods().map((pod) => pod.inFlight)
    const pending = gateway.send(create)
    await eventually(() => admission.waiting() === 1)
    expect(gateway.pods.running(podA)).toBe(1)
    expect(gateway.predictor.pods().map((pod) => pod.inFlight)).toEqual(before)
    await gateway.serve(first)
    const second = forwarded(await pending)
    expect(gateway.pods.running(podA)).toBe(1)
    await gateway.serve(second)
    expect([inUse(admission), backlog()]).toEqual([[0], [0]])
  })

  test.each<[string, (gateway: ContextGateway) => Promise<ForwardDecision>, readonly [number, number]]>([
    ['of a session: those of its model', async (gateway) => gateway.use((await gateway.create()).id), [1, 1]],
    ['without a session: those of any model', (gateway) => gateway.use(newSessionId()), [1, 0]],
    [
      'whose session was not created: those of the model in its body',
      async (gateway) => {
        gateway.store.breakDown('all')
        const headers = { 'x-session-ttl': '60' }
        return forwarded(await gateway.send({ path: '/v1/completions', body: promptBody, headers }))
      },
      [1, 1],
    ],
  ])('has requirements %s', async (_name, begin, expected) => {
    const { admission, gateway } = setUp(['prefill=any:1', 'prefill/m=own:1'])
    const turn = await begin(gateway)
    expect(inUse(admission)).toEqual(expected)
    await gateway.serve(turn)
    expect(inUse(admission)).toEqual([0, 0])
  })

  test('is refused with 429 and Retry-After when the queue is full, and leaves nothing behind', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'], { maxWaiting: 0, maxWaitMs: 4200 })
    const first = forwarded(await gateway.send(create))
    const refused = toErrorResponse(rejection(await gateway.send(create)))
    expect(refused).toEqual({
      status: 429,
      headers: { 'x-should-retry': 'true', 'retry-after': '5' },
      body: {
        error: {
          message:
            'Too many turns are under way and waiting right now. Try again after the time that Retry-After names.',
          type: 'rate_limit_error',
          param: null,
          code: 'rate_limit_exceeded',
        },
      },
    })
    expect(gateway.pods.running(podA)).toBe(1)
    await gateway.serve(first)
    expect([inUse(admission), await gateway.store.counts()]).toMatchObject([[0], { sessions: 1 }])
  })

  test('may be retried with the same Idempotency-Key after a refusal', async () => {
    const { gateway } = setUp(['prefill=R1:1'], { maxWaiting: 0 })
    const first = forwarded(await gateway.send(create))
    const keyed = { ...create, headers: { 'idempotency-key': 'one and the same' } }
    expect(rejection(await gateway.send(keyed)).code).toBe('rate_limit_exceeded')
    await gateway.serve(first)
    const retried = forwarded(await gateway.send(keyed))
    await gateway.serve(retried)
    const path = `/v1/context/${retried.responseHeaders['x-session-id']}`
    expect(await gateway.send({ method: 'GET', path })).toMatchObject({ body: { turns: 1 } })
  })

  test('is refused when it has waited for maxWaitMs, and its session is unchanged', async () => {
    const { gateway } = setUp(['prefill=R1:1'], { maxWaitMs: 20 })
    const { id } = await gateway.create()
    const first = await gateway.use(id)
    const refused = await gateway.send({ path: '/v1/completions', headers: { 'x-session-id': id } })
    expect(rejection(refused).code).toBe('rate_limit_exceeded')
    await gateway.serve(first)
    expect(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).toMatchObject({ body: { turns: 2 } })
  })

  test.each([
    { name: 'a create', request: () => create },
    {
      name: 'a turn of a session',
      request: (id: string) => ({ path: '/v1/completions', headers: { 'x-session-id': id } }),
    },
    {
      name: 'a turn without a session',
      request: () => ({ path: '/v1/completions', headers: { 'x-session-id': newSessionId() } }),
    },
  ])('leaves the queue at once when its client disconnects: $name', async ({ request }) => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    const { id } = await gateway.create()
    const first = forwarded(await gateway.send(create))
    const scope = watchedScope()
    const pending = gateway.send(request(id), scope)
    await eventually(() => admission.waiting() === 1)
    scope.leave()
    expect(admission.waiting()).toBe(0)
    expect((await pending).kind).toBe('cancelled')
    expect(gateway.events.of('requestDecided').at(-1)?.[1]).toBe('abandoned')
    await gateway.serve(first)
    expect([inUse(admission), gateway.pods.running(podA), gateway.connector.claims()]).toEqual([[0], 0, []])
  })

  test('holds nothing when its client disconnects as it is admitted', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    const first = forwarded(await gateway.send(create))
    const scope = watchedScope()
    const pending = gateway.send(create, scope)
    await eventually(() => admission.waiting() === 1)
    admission.release('prefill', ticketOf(first).turnId)
    scope.leave()
    expect((await pending).kind).toBe('cancelled')
    expect(inUse(admission)).toEqual([0])
  })

  test('holds nothing when its KV cannot be attached', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    gateway.connector.faults.before('attach', () => {
      throw new Error('a fault of the connector')
    })
    expect(rejection(await gateway.send(create)).code).toBe('internal_error')
    expect(inUse(admission)).toEqual([0])
  })

  test('extends Envoy’s message timeout once, and only when it waits', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'], { maxWaitMs: 5000 })
    const { id } = await gateway.create()
    const [immediate, waiting] = [watchedScope(), watchedScope()]
    const first = forwarded(await gateway.send(create, immediate))
    expect(immediate.extensions).toEqual([])
    const pending = gateway.send({ path: '/v1/completions', headers: { 'x-session-id': id } }, waiting)
    await eventually(() => admission.waiting() === 1)
    // 1020 tokens are taken to cost 10 ms each, and a load at most 10 s.
    expect(waiting.extensions).toEqual([5000 + 10_000 + 1000])
    await gateway.serve(first)
    await gateway.serve(forwarded(await pending))
  })
})

describe('a load', () => {
  const createLoading = async (requirements: readonly string[]) => {
    const { admission, gateway } = setUp(requirements)
    const first = await gateway.create()
    const second = await gateway.create()
    gateway.fleet.restart(podA)
    gateway.predictor.forget(first.key)
    gateway.predictor.forget(second.key)
    return { admission, gateway, first, second }
  }

  test('holds what it requires until it ends', async () => {
    const { admission, gateway, first } = await createLoading(['load=disk:1'])
    gateway.connector.faults.holdLoads(true)
    const pending = gateway.use(first.id)
    await eventually(() => gateway.connector.loads() === 1)
    expect(inUse(admission)).toEqual([1])
    gateway.connector.faults.holdLoads(false)
    const turn = await pending
    expect(turn.responseHeaders['x-context-cache']).toMatch(/^hit; tier=store/)
    expect(inUse(admission)).toEqual([0])
  })

  test('waits for another load', async () => {
    const { admission, gateway, first, second } = await createLoading(['load=disk:1'])
    gateway.connector.faults.holdLoads(true)
    const one = gateway.use(first.id)
    await eventually(() => gateway.connector.loads() === 1)
    const other = gateway.use(second.id)
    await eventually(() => admission.waiting() === 1)
    expect(gateway.connector.loads()).toBe(1)
    gateway.connector.faults.holdLoads(false)
    const caches = (await Promise.all([one, other])).map((turn) => turn.responseHeaders['x-context-cache'])
    expect(caches).toEqual([expect.stringMatching(/^hit; tier=store/), expect.stringMatching(/^hit; tier=store/)])
    expect(inUse(admission)).toEqual([0])
  })

  test('is skipped when it is not admitted, and the turn runs as a miss', async () => {
    const { admission, gateway, first, second } = await createLoading(['load=disk:1'])
    gateway.connector.faults.holdLoads(true)
    const one = gateway.use(first.id)
    await eventually(() => gateway.connector.loads() === 1)
    const other = gateway.use(second.id)
    await eventually(() => admission.waiting() === 1)
    // As when the time is over.
    admission.close()
    expect((await other).responseHeaders['x-context-cache']).toBe('miss; reason=load_timeout')
    expect(gateway.connector.loads()).toBe(1)
    gateway.connector.faults.holdLoads(false)
    await one
  })

  test('is not requested when the pod holds the KV', async () => {
    const { admission, gateway } = setUp(['load=disk:1'])
    const { id } = await gateway.create()
    admission.request(
      { kind: 'load', turnId: 'someone', model: 'm', pod: podA },
      { waitMs: 0, client: { signal: new AbortController().signal } },
    )
    const turn = await gateway.use(id)
    expect(turn.responseHeaders['x-context-cache']).toMatch(/^hit; tier=gpu/)
    expect(admission.waiting()).toBe(0)
  })
})
