import { describe, expect, test } from '@jest/globals'
import { type createContextGateway, gatewayWithSession } from '../../support/context-gateway.ts'
import { cacheStatusOf, rejection } from '../../support/decisions.ts'

describe('the deadline of a session', () => {
  const expiryOf = async (gateway: ReturnType<typeof createContextGateway>, id: string) => {
    const { expires_at, ttl } = (await gateway.view(id)) as {
      readonly expires_at: number
      readonly ttl: number
    }
    return { expiresInSeconds: expires_at - Math.floor(gateway.nowMs() / 1000), ttl }
  }

  test.each([
    { name: 'stays as the create has set it', sliding: false, announced: '01:00:00', expiresInSeconds: 2970 },
    { name: 'moves with every turn when sliding', sliding: true, announced: '01:10:00', expiresInSeconds: 3600 },
  ])('$name', async ({ sliding, announced, expiresInSeconds }) => {
    const { gateway, id } = await gatewayWithSession({ sliding })
    gateway.advance(600)

    const forward = await gateway.use(id)
    gateway.advance(30)
    await gateway.serve(forward)

    expect(forward.responseHeaders['x-session-expires-at']).toBe(`2025-08-01T${announced}.000Z`)
    expect(await expiryOf(gateway, id)).toEqual({ expiresInSeconds, ttl: 3600 })
  })

  test.each([{ sliding: false }, { sliding: true }])(
    'is the one that a turn with a TTL announced (sliding: $sliding)',
    async ({ sliding }) => {
      const { gateway, id } = await gatewayWithSession({ sliding })

      const forward = await gateway.use(id, { headers: { 'x-session-ttl': '120' } })
      gateway.advance(30)
      await gateway.serve(forward)

      expect(forward.responseHeaders).toMatchObject({
        'x-session-ttl': '120',
        'x-session-expires-at': '2025-08-01T00:02:00.000Z',
      })
      expect(await expiryOf(gateway, id)).toEqual({ expiresInSeconds: 90, ttl: 120 })
    },
  )
})

describe('an expired session', () => {
  test('starts anew under its id with a miss', async () => {
    const { gateway, id } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
    await gateway.sweep(61)

    const forward = await gateway.use(id)
    await gateway.serve(forward)

    expect(forward.responseHeaders).toEqual({
      'x-session-id': id,
      'x-session-ttl': '60',
      'x-session-expires-at': '2025-08-01T00:02:01.000Z',
      'x-context-cache': 'miss; reason=session_expired',
    })
    expect(forward.expectModel).toBe('m')
    expect(await gateway.view(id)).toMatchObject({ id, ttl: 60, turns: 1 })
    expect(cacheStatusOf(await gateway.use(id))).toBe('hit; tier=gpu; tokens=1020')
  })

  test('stays expired when the turn fails', async () => {
    const { gateway, id } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
    gateway.advance(61)

    await gateway.serve(await gateway.use(id), { status: 500 })
    await gateway.sweep()

    expect(rejection(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).code).toBe('session_not_found')
    expect(gateway.fleet.everything()).toEqual([])
  })
})
