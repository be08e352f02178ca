import { describe, expect, jest, test } from '@jest/globals'
import type { Admission } from '../../../src/admission/admission.ts'
import type { ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { newSessionId } from '../../../src/context/session-id.ts'
import { toErrorResponse } from '../../../src/openai/gateway-error.ts'
import { type ContextGateway, createContextGateway, podA, podB, promptBody } from '../../support/context-gateway.ts'
import { forwarded, rejection, ticketOf } from '../../support/decisions.ts'
import { eventually } from '../../support/eventually.ts'
import { gatewayRequest, watchedScope } from '../../support/gateway-request.ts'
import { admissionBy, planOf } from '../../support/planned-admission.ts'

const setUp = (
  requirements: readonly string[],
  given: { readonly maxWaiting?: number; readonly maxWaitMs?: number; readonly pods?: readonly string[] } = {},
) => {
  const { pods = [podA], ...limits } = given
  const admission = admissionBy(planOf({ requirements }, pods), limits)
  return { admission, gateway: createContextGateway({ pods, admission }) }
}

const create = { path: '/v1/context', body: promptBody }

const useOf = (id: string) => ({ path: '/v1/completions', headers: { 'x-session-id': id } })

const inUse = (admission: Admission): readonly number[] => admission.usage([podA]).map((usage) => usage.inUse)

describe('a turn', () => {
  test.each([
    ['is reported', {}],
    ['is a failure', { status: 500 }],
    ['is a disconnect of its client', { complete: false, clientDisconnected: true }],
    ['is reported by another pod', { servedBy: podB }],
    ['is reported by no pod', { servedBy: null, status: 503, upstreamFailed: true }],
  ])('holds what it requires until its end %s', async (_title, answer) => {
    const { admission, gateway } = setUp(['prefill=R1:1'], { pods: [podA, podB] })
    const inUseNow = () => admission.usage([podA, podB]).reduce((sum, usage) => sum + usage.inUse, 0)
    const turn = forwarded(await gateway.send(create))
    expect(inUseNow()).toBe(1)
    await gateway.serve(turn, answer)
    expect(inUseNow()).toBe(0)
  })

  test('counts neither on its pod nor in the prediction while it waits, and runs after the one before', async () => {
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

  test.each(['completions', 'audio/transcriptions'])('as picker waits for the body of /v1/%s', async (path) => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    const request = { ...gatewayRequest({ path: `/v1/${path}` }), pick: { subset: undefined } }
    const decision = await gateway.service.onHeaders(request, watchedScope())
    expect(decision).toEqual({ kind: 'need-body', decide: expect.any(Function) })
    expect(inUse(admission)).toEqual([0])
    if (decision.kind !== 'need-body') return
    await gateway.serve(forwarded(await decision.decide(Buffer.from('{}'), watchedScope())))
    expect(gateway.pods.running(podA)).toBe(0)
  })

  test('is refused with 429 and Retry-After when the queue is full, and leaves nothing behind', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'], { maxWaiting: 0, maxWaitMs: 4200 })
    const first = forwarded(await gateway.send(create))
    expect(toErrorResponse(rejection(await gateway.send(create)))).toMatchObject({
      status: 429,
      headers: { 'x-should-retry': 'true', 'retry-after': '5' },
      body: {
        error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: expect.stringMatching(/Retry-After/) },
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
    const refused = await gateway.send(useOf(id))
    expect(rejection(refused).code).toBe('rate_limit_exceeded')
    await gateway.serve(first)
    expect(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).toMatchObject({ body: { turns: 2 } })
  })

  test.each([
    ['a create', () => create],
    ['a turn of a session', useOf],
    ['a turn without a session', () => useOf(newSessionId())],
  ])('leaves the queue at once when its client disconnects: %s', async (_title, request) => {
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

  test('holds nothing when it cannot be forwarded', async () => {
    const { admission, gateway } = setUp(['prefill=R1:1'])
    jest.spyOn(gateway.pods, 'turnStarted').mockImplementation(() => {
      throw new Error('a fault of the gateway')
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
    const pending = gateway.send(useOf(id), waiting)
    await eventually(() => admission.waiting() === 1)
    expect(waiting.extensions).toEqual([30_000])
    await gateway.serve(first)
    await gateway.serve(forwarded(await pending))
  })
})

describe('a load', () => {
  /** Two sessions whose KV is in the store alone; a turn of the first is loading it. */
  const startLoad = async () => {
    const { admission, gateway } = setUp(['load=disk:1'])
    const [first, second] = [await gateway.create(), await gateway.create()]
    gateway.fleet.restart(podA)
    gateway.connector.faults.holdLoads(true)
    const loading = gateway.use(first.id)
    await eventually(() => gateway.connector.loads() === 1)
    return { admission, gateway, loading, second }
  }
  const cacheOf = async (turn: Promise<ForwardDecision>) => (await turn).responseHeaders['x-context-cache']

  test('holds what it requires until it ends', async () => {
    const { admission, gateway, loading } = await startLoad()
    expect(inUse(admission)).toEqual([1])
    gateway.connector.faults.holdLoads(false)
    expect(await cacheOf(loading)).toMatch(/^hit; tier=store/)
    expect(inUse(admission)).toEqual([0])
  })

  test('that seems too slow is tried for a small share of turns', async () => {
    const gateway = createContextGateway({ pods: [podA], msPerToken: 1e-6 })
    const { id } = await gateway.create()
    gateway.fleet.restart(podA)
    jest.spyOn(Math, 'random').mockReturnValueOnce(0.5).mockReturnValueOnce(0.01)
    expect(await cacheOf(gateway.use(id))).toBe('miss; reason=load_too_slow')
    expect(await cacheOf(gateway.use(id))).toMatch(/^hit; tier=store/)
  })

  test('waits for another load', async () => {
    const { admission, gateway, loading, second } = await startLoad()
    const other = gateway.use(second.id)
    await eventually(() => admission.waiting() === 1)
    expect(gateway.connector.loads()).toBe(1)
    gateway.connector.faults.holdLoads(false)
    for (const turn of [loading, other]) expect(await cacheOf(turn)).toMatch(/^hit; tier=store/)
    expect(inUse(admission)).toEqual([0])
  })

  test('is skipped when it is not admitted, and the turn runs as a miss', async () => {
    const { admission, gateway, loading, second } = await startLoad()
    const other = gateway.use(second.id)
    await eventually(() => admission.waiting() === 1)
    // As when the time is over.
    admission.close()
    expect(await cacheOf(other)).toBe('miss; reason=load_timeout')
    expect(gateway.connector.loads()).toBe(1)
    gateway.connector.faults.holdLoads(false)
    await loading
  })

  test('is not requested when the pod holds the KV', async () => {
    const { admission, gateway } = setUp(['load=disk:1'])
    const { id } = await gateway.create()
    await admission.admitLoad({
      turnId: 'another',
      model: 'm',
      pod: podA,
      waitMs: 0,
      signal: new AbortController().signal,
    })
    expect(await cacheOf(gateway.use(id))).toMatch(/^hit; tier=gpu/)
    expect(admission.waiting()).toBe(0)
  })
})
