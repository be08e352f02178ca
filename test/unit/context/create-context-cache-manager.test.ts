import { describe, expect, jest, test } from '@jest/globals'
import { newSessionId, sessionKeyOf } from '../../../src/context/session-id.ts'
import { toErrorResponse } from '../../../src/openai/gateway-error.ts'
import {
  createContextGateway,
  gatewayWithSession,
  podA,
  podB,
  promptBody,
  type SentRequest,
} from '../../support/context-gateway.ts'
import { forwarded, rejection, ticketOf } from '../../support/decisions.ts'
import { gatewayRequest, watchedScope } from '../../support/gateway-request.ts'

const ttl = { 'x-session-ttl': '60' }

describe('a request that carries no session', () => {
  test.each<readonly [name: string, request: SentRequest]>([
    ['an inference request', { path: '/v1/completions', body: promptBody }],
    ['an inference request without credential', { path: '/v1/responses', headers: { authorization: [] } }],
    ['GET on an inference path', { method: 'GET', path: '/v1/completions', headers: ttl }],
    ['GET with a session', { method: 'GET', path: '/v1/completions', headers: { 'x-session-id': newSessionId() } }],
  ])('passes unchanged: %s', async (_name, request) => {
    expect(await createContextGateway().send(request)).toEqual({ kind: 'passthrough', destinations: [] })
  })

  test.each([
    { name: 'other paths', paths: ['', '*', '/', '/v1', '/v1/chat', '/v1/contexts', '/v1/models', '/constructor'] },
    { name: 'longer paths', paths: ['/v1/context/', '/v1/context/a/b', '/v1/context/a/', '/v1/completions/'] },
    { name: 'disguised paths', paths: ['/V1/context', '/v1//context', '/v1/context/../completions', '/v1/%63ontext'] },
    { name: 'a URL', paths: ['http://engine/v1/context'] },
  ])('is rejected on $name', async ({ paths }) => {
    const gateway = createContextGateway()
    for (const path of paths)
      expect(rejection(await gateway.send({ path }))).toMatchObject({ code: 'unknown_path', status: 404 })
  })
})

// Other requests may use its slot until the body has come.
test('as endpoint picker a turn waits for its body, which names its model if its session is gone by then', async () => {
  const { gateway, id } = await gatewayWithSession()
  const headers = { authorization: 'Bearer key-a', 'x-session-id': id }
  const request = { ...gatewayRequest({ path: '/v1/completions', headers }), pick: { subset: undefined } }

  const decision = await gateway.service.onHeaders(request, watchedScope())
  await gateway.remove(id)
  if (decision.kind !== 'need-body') throw new Error('decided without its body')
  const forward = forwarded(await decision.decide(Buffer.from(JSON.stringify(promptBody)), watchedScope()))
  expect(ticketOf(forward)).toMatchObject({ model: 'm' })
})

describe('an id of another system', () => {
  const foreign = '6e53914f-3a2d-4ab9-9a43-5fbb04bd1a1c'

  test('as endpoint picker leads to the same pod, also while that computes the request before', async () => {
    const podsOf = async (id: string) => {
      const gateway = createContextGateway()
      const headers = { 'x-session-id': id, 'content-length': '4000' }
      const request = { ...gatewayRequest({ path: '/v1/completions', headers }), pick: { subset: undefined } }
      const pick = async () => {
        const decision = await gateway.service.onHeaders(request, watchedScope())
        if (decision.kind !== 'need-body') throw new Error('decided without its body')
        const body = Buffer.from(JSON.stringify(promptBody))
        return forwarded(await decision.decide(body, watchedScope())).destinations[0]
      }
      return [await pick(), await pick()]
    }
    const pods = await Promise.all(Array.from({ length: 16 }, (_, n) => podsOf(`session-${n}`)))
    expect(new Set(pods.map(String))).toEqual(new Set([podA, podB].map((pod) => `${pod},${pod}`)))
  })

  test('passes to the pool of its model, each id always to the same pods', async () => {
    const gateway = createContextGateway({ poolName: 'chat' })
    const sendAll = () =>
      Promise.all(
        Array.from({ length: 64 }, (_, n) => {
          const headers = { 'x-session-id': `session-${n}`, 'x-gateway-model-name': 'm' }
          return gateway.send({ path: '/v1/completions', headers })
        }),
      )
    const decisions = await sendAll()
    const requestHeaders = { 'x-context-pool': 'chat' }
    const to = (...destinations: readonly string[]) => ({ kind: 'passthrough', destinations, requestHeaders })

    expect(await sendAll()).toEqual(decisions)
    expect(new Set(decisions.map((one) => JSON.stringify(one)))).toEqual(
      new Set([to(podA, podB), to(podB, podA)].map((one) => JSON.stringify(one))),
    )
  })

  test.each([
    { name: 'a credential', headers: { authorization: [] } },
    { name: 'a valid TTL', headers: { 'x-session-ttl': 'abc' } },
    { name: 'a known policy', headers: { 'routing-strategy': 'fastest' } },
    { name: 'a plain body', headers: { 'content-encoding': 'gzip' } },
  ])('passes without $name', async ({ headers }) => {
    const decision = await createContextGateway().send({
      path: '/v1/chat/completions',
      headers: { 'x-session-id': foreign, ...headers },
    })

    expect(decision.kind).toBe('passthrough')
  })

  test.each([
    { name: 'empty', id: '' },
    { name: 'of other characters', id: `ctx_${'\xe9'.repeat(32)}` },
    { name: 'of 50 KB', id: 'a'.repeat(50_000) },
    { name: 'a list of other ids', id: 'one, two' },
    { name: 'a list with an id in other characters', id: `x${newSessionId()}, ${newSessionId()}.y` },
    { name: 'commas and blanks alone', id: ', ,\t,'.repeat(10_000) },
  ])('may be $name', async ({ id }) => {
    const decision = await createContextGateway().send({ path: '/v1/completions', headers: { 'x-session-id': id } })

    expect(decision.kind).toBe('passthrough')
  })

  test('passes without a destination while no pod is ready', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    gateway.pods.setReady(podA, false)

    expect(await gateway.send({ path: '/v1/completions', headers: { 'x-session-id': foreign } })).toMatchObject({
      kind: 'passthrough',
      destinations: [],
    })
  })

  test('is routed by the first value when sent twice', async () => {
    const gateway = createContextGateway()
    const send = (ids: string | readonly string[]) =>
      gateway.send({ path: '/v1/completions', headers: { 'x-session-id': ids } })

    expect(await send([foreign, 'another'])).toEqual(await send(foreign))
  })
})

describe('more than one x-session-id', () => {
  const id = newSessionId()

  test.each([
    { name: 'two different ones', ids: [id, newSessionId()] },
    { name: 'the same twice', ids: [id, id] },
    { name: 'a foreign one first', ids: ['session-01', id] },
    { name: 'a foreign one last', ids: [id, 'session-01'] },
    { name: 'an empty one', ids: ['', id] },
    { name: 'two in one header', ids: [`${id}, ${newSessionId()}`] },
    { name: 'the same twice in one header', ids: [`${id},${id}`] },
    { name: 'a foreign one first, in one header', ids: [`session-01,${id}`] },
    { name: 'a foreign one last, in one header', ids: [`${id} ,\tsession-01`] },
    { name: 'an empty one in one header', ids: [`,${id}`] },
    { name: 'a list that is none', ids: [`${id},`] },
    { name: 'a list behind a foreign one', ids: ['session-01', `a, ${id}, b`] },
  ])('is refused: $name', async ({ ids }) => {
    const decision = await createContextGateway().send({ path: '/v1/completions', headers: { 'x-session-id': ids } })

    expect(rejection(decision)).toMatchObject({ code: 'invalid_session_id', status: 400, param: 'x-session-id' })
  })
})

describe('a fault of the gateway itself', () => {
  test('is answered 500 without its cause and reported', async () => {
    const gateway = createContextGateway()
    const cause = new Error('secret detail')
    const { id } = await gateway.create()
    gateway.store.before('get', () => Promise.reject(cause))

    const { status, body } = toErrorResponse(
      rejection(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })),
    )

    expect(status).toBe(500)
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(gateway.events.of('fault')).toEqual([['headers', cause]])
  })

  test('releases the lease of a create', async () => {
    const gateway = createContextGateway()
    jest.spyOn(gateway.pods, 'turnStarted').mockImplementation(() => {
      throw new Error('a fault of the gateway')
    })

    const decision = await gateway.send({ path: '/v1/context', body: promptBody })

    expect(rejection(decision).code).toBe('internal_error')
    expect(await gateway.store.counts()).toMatchObject({ sessions: 0 })
    expect(gateway.events.of('sessionCreated')).toEqual([])
  })

  test('is still reported when the lease cannot be released', async () => {
    const gateway = createContextGateway()
    const cause = new Error('a fault of the gateway')
    jest.spyOn(gateway.pods, 'turnStarted').mockImplementation(() => {
      throw cause
    })
    gateway.store.breakDown(['abandon'])

    await gateway.send({ path: '/v1/context', body: promptBody })

    expect(gateway.events.of('fault')).toEqual([['body', cause]])
  })
})

describe('events of a request', () => {
  const create = { path: '/v1/context', body: promptBody }
  const turn = { path: '/v1/responses', headers: { 'x-session-id': newSessionId() } }
  test.each<readonly [name: string, request: SentRequest, operation: string, outcome: string]>([
    ['a create', create, 'create', 'forwarded'],
    ['a bad create', { ...create, body: {} }, 'create', 'rejected'],
    ['a create by header', { ...create, path: '/v1/completions', headers: ttl }, 'create', 'forwarded'],
    ['a turn', { ...turn, path: '/v1/chat/completions' }, 'chat_completions', 'forwarded'],
    ['a turn with a query', { ...turn, path: '/v1/responses?stream=true' }, 'responses', 'forwarded'],
    ['a turn of Claude Code', { ...turn, path: '/v1/messages?beta=true' }, 'messages', 'forwarded'],
    ['a foreign id', { ...turn, headers: { 'x-session-id': 'x' } }, 'responses', 'passed'],
    ['a list', { method: 'GET', path: '/v1/context' }, 'list', 'answered'],
    ['a list with a query', { method: 'GET', path: '/v1/context?limit=5&a=/v1/responses?b' }, 'list', 'answered'],
    ['a get', { method: 'GET', path: '/v1/context/x' }, 'get', 'rejected'],
    ['a get of an encoded id', { method: 'GET', path: '/v1/context/..%2f..?x=/y' }, 'get', 'rejected'],
    ['an update', { method: 'PATCH', path: '/v1/context/x' }, 'update', 'rejected'],
    ['a delete', { method: 'DELETE', path: '/v1/context/x' }, 'delete', 'rejected'],
    ['an unknown method', { method: 'BREW', path: '/v1/context' }, 'other', 'rejected'],
    ['an unknown method on a session', { method: 'BREW', path: '/v1/context/x' }, 'other', 'rejected'],
    ['an unknown path', { path: '/v2' }, 'other', 'rejected'],
  ])('count %s once', async (_name, request, operation, outcome) => {
    const gateway = createContextGateway()

    await gateway.send(request)

    expect(gateway.events.of('requestDecided')).toEqual([[operation, outcome]])
  })

  test('contain no id, credential or prompt', async () => {
    const gateway = createContextGateway()
    const { id } = await gateway.create()
    await gateway.serve(await gateway.use(id))
    await gateway.remove(id)

    const told = JSON.stringify(
      (['requestDecided', 'sessionCreated', 'sessionDeleted', 'prepared', 'turnEnded', 'offloaded'] as const).map(
        (name) => gateway.events.of(name),
      ),
    )

    expect(told).toContain(sessionKeyOf(id))
    expect(told).not.toContain(id.slice(4))
    expect(told).not.toContain('key-a')
    expect(told).not.toContain('Say this')
  })
})
