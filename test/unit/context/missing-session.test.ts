import { describe, expect, test } from '@jest/globals'
import { newSessionId } from '../../../src/context/session-id.ts'
import {
  type ContextGateway,
  createContextGateway,
  gatewayWithSession,
  nothingLeft,
  podA,
} from '../../support/context-gateway.ts'
import { answerBody, cacheStatusOf, rejection, ticketOf } from '../../support/decisions.ts'

const neverMade = newSessionId()

describe('a turn of a session that does not exist', () => {
  test.each([
    { name: 'without a TTL', headers: {} },
    { name: 'with a TTL', headers: { 'x-session-ttl': '60' } },
  ])('$name is forwarded without a session and counted on its pod until it ends', async ({ headers }) => {
    const gateway = createContextGateway({ pods: [podA] })

    const forward = await gateway.use(neverMade, { headers: { ...headers, 'x-gateway-model-name': 'm' } })
    const during = gateway.pods.running(podA)
    await gateway.serve(forward)

    expect(forward.responseHeaders).toEqual({ 'x-context-cache': 'miss; reason=session_not_found' })
    expect(forward).toMatchObject({ splice: undefined, expectModel: undefined, requestHeaders: {} })
    expect(ticketOf(forward).session).toBeUndefined()
    expect([during, gateway.pods.running(podA)]).toEqual([1, 0])
    expect(gateway.events.of('turnEnded')).toMatchObject([['completed', {}, { pod: podA, model: 'm' }]])
    expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
  })

  test('is a miss that revives nothing when it was deleted', async () => {
    const { gateway, id } = await gatewayWithSession()
    await gateway.remove(id)

    const forward = await gateway.use(id)
    await gateway.serve(forward)

    expect(forward.responseHeaders).toEqual({ 'x-context-cache': 'miss; reason=session_deleted' })
    expect(await gateway.leftovers()).toEqual(nothingLeft)
  })
})

describe('with sessions.unknownSession: reject', () => {
  type End = (gateway: ContextGateway, id: string) => unknown
  test.each<{ name: string; end?: End; code: string; status: number }>([
    { name: 'is unknown', code: 'session_not_found', status: 404 },
    { name: 'was deleted', end: (gateway, id) => gateway.remove(id), code: 'session_deleted', status: 410 },
    { name: 'has expired', end: (gateway) => gateway.advance(3600), code: 'session_expired', status: 410 },
  ])('a turn of a session that $name gets $status and changes nothing', async ({ end, code, status }) => {
    const gateway = createContextGateway({ unknownSession: 'reject' })
    const id = end === undefined ? neverMade : (await gateway.create()).id
    await end?.(gateway, id)
    const use = () => gateway.send({ path: '/v1/completions', headers: { 'x-session-id': id } })

    const error = rejection(await use())
    await gateway.sweep()

    expect(error).toMatchObject({ code, status, param: 'x-session-id' })
    expect(rejection(await use()).code).toBe(code)
    expect(gateway.fleet.everything()).toEqual([])
    expect(gateway.connector.claims()).toEqual([])
  })

  test('a turn of a live session uses it', async () => {
    const { gateway, id } = await gatewayWithSession({ unknownSession: 'reject' })

    expect(cacheStatusOf(await gateway.use(id))).toBe('hit; tier=gpu; tokens=1020')
  })
})

test.each<[string, (gateway: ContextGateway, id: string) => Promise<unknown>]>([
  ['is deleted', async (gateway, id) => answerBody(await gateway.remove(id))],
  ['is expired and swept', (gateway) => gateway.sweep(60)],
  [
    'is expired and starts anew',
    async (gateway, id) => {
      gateway.advance(60)
      await gateway.serve(await gateway.use(id), { status: 500 })
    },
  ],
])('the prefix index drops a session that %s', async (_title, end) => {
  const { gateway, id, key } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
  const holders = (): number => gateway.predictor.residentTokens(key).size
  expect(holders()).toBe(1)

  await end(gateway, id)

  expect(holders()).toBe(0)
})
