import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { exchangeRaw } from '../support/raw-http.ts'
import { inferencePaths } from '../support/scripted-responses.ts'
import { createdId, look, remove, unknownId, untilGone, untilTurns } from '../support/sessions.ts'
import { bounds } from './fixture.ts'
import { fixture } from './shared-fixture.ts'
import { asJson, expectRefusal, reading, someBody, someJson, watching, wellFramed } from './support.ts'

const { stack } = fixture
const other = { authorization: 'Bearer another-key' }

const use = (id: string, headers: Record<string, string> = {}, path = '/v1/completions') =>
  call(`${stack.url}${path}`, { headers: { 'x-session-id': id, ...headers }, body: someBody })

const status = async (id: string): Promise<number> => (await look(stack, id)).status

describe('a turn of a session that is not there', () => {
  test.each(inferencePaths)('gets a whole response on %s', async (path) => {
    const { result, arrivals } = await watching(fixture, () => use(unknownId, {}, path))

    expect(result.status).toBe(200)
    expect(result.headers.get('x-context-cache')).toBe('miss; reason=session_not_found')
    expect(result.headers.get('x-session-id')).toBeNull()
    expect(arrivals).toMatchObject([{ request: { path, body: someJson } }])
    expect(await status(unknownId)).toBe(404)
  })

  test('reads byte for byte the same for an id that was never given out and for another tenant’s', async () => {
    const id = await createdId(stack)
    /** But for the time, and for how long it took. */
    const answerTo = async (sessionId: string): Promise<string> => {
      const headers = ['authorization: Bearer another-key', asJson, `x-session-id: ${sessionId}`]
      const request = wellFramed('POST /v1/completions', { headers, body: someJson })
      const response = (await exchangeRaw(stack.port, request)).toString('latin1')
      return response
        .replaceAll(/^(date|x-envoy-upstream-service-time): .*$/gm, '$1: …')
        .split('\r\n')
        .sort()
        .join('\r\n')
    }

    const unknown = await answerTo(unknownId)

    expect(await answerTo(id)).toBe(unknown)
    expect(unknown).toContain('x-context-cache: miss; reason=session_not_found')
  })

  test('does not change another tenant’s session', async () => {
    const id = await createdId(stack)
    const before = await untilTurns(stack, id, 1)

    await use(id, { ...other, 'x-session-ttl': '5' })
    // The next turn of its owner is counted after any effect of the other one.
    await use(id)

    expect(await untilTurns(stack, id, 2)).toMatchObject({ expires_at: before.expires_at, ttl: 3600 })
  })

  test('starts an expired one of its own tenant anew, and no one else’s', async () => {
    const id = await createdId(stack, { headers: { 'x-session-ttl': String(bounds.min) } })
    await untilGone(stack, id)

    const theirs = await use(id, other)
    const own = await use(id, { 'x-session-ttl': '600' })

    expect(theirs.headers.get('x-context-cache')).toBe('miss; reason=session_not_found')
    expect(own.headers.get('x-context-cache')).toBe('miss; reason=session_expired')
    expect(own.headers.get('x-session-id')).toBe(id)
    await eventually(async () => expect(await status(id)).toBe(200))
  })

  test('does not revive a deleted one', async () => {
    const id = await createdId(stack)
    expect((await remove(stack, id)).status).toBe(200)

    const response = await use(id)

    expect([response.status, response.headers.get('x-context-cache')]).toEqual([200, 'miss; reason=session_deleted'])
    expect(response.headers.get('x-session-id')).toBeNull()
    expect(await status(id)).toBe(404)
  })

  test('is refused with an invalid TTL', async () => {
    const response = await use(unknownId, { 'x-session-ttl': 'soon' })

    expectRefusal(reading(response), { status: 400, code: 'invalid_ttl', param: 'x-session-ttl' })
  })
})
