import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { exchangeRaw } from '../support/raw-http.ts'
import { inferencePaths } from '../support/scripted-answers.ts'
import {
  asJson,
  type Bench,
  createSession,
  expectRefusal,
  reading,
  someBody,
  someJson,
  startBench,
  unknownId,
  watching,
  wellFramed,
} from './support.ts'

jest.setTimeout(30_000)

const other = { authorization: 'Bearer another-key' }

const use = (bench: Bench, id: string, headers: Record<string, string> = {}, path = '/v1/completions') =>
  call(`${bench.stack.url}${path}`, { headers: { 'x-session-id': id, ...headers }, body: someBody })

const status = async (bench: Bench, id: string): Promise<number> =>
  (await call(`${bench.stack.url}/v1/context/${id}`)).status

const expiredSession = async (bench: Bench): Promise<string> => {
  const id = await createSession(bench.stack, { headers: { 'x-session-ttl': '1' } })
  await eventually(async () => expect(await status(bench, id)).toBe(404))
  return id
}

const deletedSession = async (bench: Bench): Promise<string> => {
  const id = await createSession(bench.stack)
  expect((await call(`${bench.stack.url}/v1/context/${id}`, { method: 'DELETE' })).status).toBe(200)
  return id
}

describe('a turn of a session that is not there', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await startBench()
  }, 120_000)
  afterAll(async () => {
    await bench?.stop()
  })

  test.each(inferencePaths)('is answered in full on %s', async (path) => {
    const { result, arrivals } = await watching(bench, () => use(bench, unknownId, {}, path))

    expect(result.status).toBe(200)
    expect(result.headers.get('x-context-cache')).toBe('miss; reason=session_not_found')
    expect(result.headers.get('x-session-id')).toBeNull()
    expect(arrivals).toMatchObject([{ request: { path, body: someJson } }])
    expect(await status(bench, unknownId)).toBe(404)
  })

  test('reads byte for byte the same for an id that was never given out and for another tenant’s', async () => {
    const id = await createSession(bench.stack)
    /** But for the time, and for how long it took. */
    const answerTo = async (sessionId: string): Promise<string> => {
      const headers = ['authorization: Bearer another-key', asJson, `x-session-id: ${sessionId}`]
      const request = wellFramed('POST /v1/completions', { headers, body: someJson })
      const answer = (await exchangeRaw(bench.stack.port, request)).toString('latin1')
      return answer
        .replaceAll(/^(date|x-envoy-upstream-service-time): .*$/gm, '$1: …')
        .split('\r\n')
        .sort()
        .join('\r\n')
    }

    const unknown = await answerTo(unknownId)

    expect(await answerTo(id)).toBe(unknown)
    expect(unknown).toContain('x-context-cache: miss; reason=session_not_found')
  })

  test('leaves another tenant’s session as it is', async () => {
    const id = await createSession(bench.stack)
    const view = async (): Promise<unknown> => (await call(`${bench.stack.url}/v1/context/${id}`)).body
    await eventually(async () => expect(await view()).toMatchObject({ turns: 1 }))
    const before = await view()

    await use(bench, id, { ...other, 'x-session-ttl': '5' })
    // The next turn of its owner is counted after whatever the other one could have done.
    await use(bench, id)

    await eventually(async () => expect(await view()).toMatchObject({ turns: 2 }))
    expect(await view()).toMatchObject({ expires_at: (before as { expires_at: number }).expires_at, ttl: 3600 })
  })

  test('starts an expired one of its own tenant anew, and no one else’s', async () => {
    const id = await expiredSession(bench)

    const theirs = await use(bench, id, other)
    const own = await use(bench, id, { 'x-session-ttl': '600' })

    expect(theirs.headers.get('x-context-cache')).toBe('miss; reason=session_not_found')
    expect(own.headers.get('x-context-cache')).toBe('miss; reason=session_expired')
    expect(own.headers.get('x-session-id')).toBe(id)
    await eventually(async () => expect(await status(bench, id)).toBe(200))
  })

  test('does not revive a deleted one', async () => {
    const id = await deletedSession(bench)

    const answer = await use(bench, id)

    expect([answer.status, answer.headers.get('x-context-cache')]).toEqual([200, 'miss; reason=session_deleted'])
    expect(answer.headers.get('x-session-id')).toBeNull()
    expect(await status(bench, id)).toBe(404)
  })

  test('is checked for its TTL all the same', async () => {
    const answer = await use(bench, unknownId, { 'x-session-ttl': 'soon' })

    expectRefusal(reading(answer), { status: 400, code: 'invalid_ttl', param: 'x-session-ttl' })
  })
})

describe('with unknown_session: reject, a turn of a session that is not there', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await startBench({ CTX_SESSIONS_UNKNOWN_SESSION: 'reject' })
  }, 120_000)
  afterAll(async () => {
    await bench?.stop()
  })

  test.each([
    { name: 'that never was', id: async () => unknownId, headers: {}, code: 'session_not_found', status: 404 },
    {
      name: 'of another tenant',
      id: () => createSession(bench.stack),
      headers: other,
      code: 'session_not_found',
      status: 404,
    },
    { name: 'that has expired', id: () => expiredSession(bench), headers: {}, code: 'session_expired', status: 410 },
    { name: 'that was deleted', id: () => deletedSession(bench), headers: {}, code: 'session_deleted', status: 410 },
    {
      name: 'that another tenant deleted',
      id: () => deletedSession(bench),
      headers: other,
      code: 'session_not_found',
      status: 404,
    },
  ])('is refused: one $name', async ({ id, headers, code, status: expected }) => {
    const sessionId = await id()

    const { result, arrivals } = await watching(bench, () => use(bench, sessionId, headers))

    expectRefusal(reading(result), { status: expected, code, param: 'x-session-id' })
    expect(arrivals).toEqual([])
  })

  test('leaves an expired one expired', async () => {
    const id = await expiredSession(bench)

    await use(bench, id)

    expect((await use(bench, id)).status).toBe(410)
    expect(await status(bench, id)).toBe(404)
  })

  test('still lets foreign ids pass', async () => {
    expect((await use(bench, 'someone-else')).status).toBe(200)
  })
})
