import { afterEach, describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { createAdminServer } from '../../../src/admin/http-server.ts'
import type { EndedTurnFacts } from '../../../src/context/context-events.ts'
import { newSessionId, sessionKeyOf } from '../../../src/context/session-id.ts'
import type { TenantKey } from '../../../src/sessions/session-record.ts'
import { eventually } from '../../support/eventually.ts'
import { operatorsParts } from '../../support/operators-parts.ts'

const token = 'operators-token-1234'
const change = { 'x-requested-with': 'context-cache' }
const alice = `alice${'a'.repeat(38)}` as TenantKey
const bob = `bob${'b'.repeat(40)}` as TenantKey

type Parts = ReturnType<typeof operatorsParts>

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** The base URL of a server with these parts. */
const serve = async ({ api, access }: Pick<Parts, 'api' | 'access'>): Promise<string> => {
  const server = createAdminServer({
    host: '127.0.0.1',
    port: 0,
    version: '1.2.3',
    api,
    access,
    metrics: { contentType: 'text/plain', render: async () => '' },
    readiness: () => ({ ready: true }),
    redactedConfig: () => ({}),
    onError: (error) => {
      throw error
    },
  })
  closers.push(() => server.stop())
  const { host, port } = await server.start()
  return `http://${host}:${port}`
}

const create = async ({ store, activity }: Parts, tenant: TenantKey, model = 'tiny'): Promise<string> => {
  const id = newSessionId()
  const key = sessionKeyOf(id)
  const lease = { turnId: 'turn-1', leaseMs: 60_000 }
  await store.create({ key, tenant, sealedId: 'x', model, ttlSeconds: 60, pod: 'p:1', retryOf: undefined, ...lease })
  activity.sessionCreated(key)
  const usage = { prompt: 10, output: 2, cached: 0 }
  await store.complete({ key, tenant, turnId: 'turn-1', pod: 'p:1', usage, expiry: { kind: 'keep' } })
  return id
}

const turnOf = (id: string): EndedTurnFacts => ({
  pool: 'default',
  pod: '10.0.0.1:8000',
  session: sessionKeyOf(id),
  model: 'tiny',
  status: 200,
  namedBy: 'thread-id',
  cacheStatus: 'hit; tier=store; tokens=90; load=7ms',
  preparedMs: 8,
  waitedMs: undefined,
  traceId: undefined,
  requestId: undefined,
  ttfbMs: 21.4,
  isStream: true,
  prefill: { savedMs: 1_500, computedMs: 250 },
})

describe('access', () => {
  test.each([
    { name: 'a token is required beyond loopback', access: { isLoopback: false }, headers: {}, status: 403 },
    { name: 'none is required on loopback', access: {}, headers: {}, status: 200 },
    { name: 'a foreign host name on loopback', access: {}, headers: { host: 'evil.example' }, status: 403 },
    { name: 'no token', access: { token }, headers: {}, status: 401 },
    { name: 'a wrong token', access: { token }, headers: { authorization: `Bearer ${token}5` }, status: 401 },
    { name: 'the token', access: { token }, headers: { authorization: `Bearer ${token}` }, status: 200 },
    { name: 'a made-up cookie', access: { token }, headers: { cookie: 'context_cache_console=9e15.x' }, status: 401 },
  ])('$name: $status', async ({ access, headers, status }) => {
    const parts = operatorsParts(access)
    const method = 'GET'
    const attempt = (): number => {
      try {
        parts.access.check({ method, headers: { host: '127.0.0.1:9090', ...headers } })
        return 200
      } catch (error) {
        return error instanceof Error && 'status' in error ? Number(error.status) : 0
      }
    }
    expect(attempt()).toBe(status)
  })

  test('a login gives a cookie that opens the API for twelve hours and no longer', async () => {
    let nowMs = Date.now()
    const parts = operatorsParts({ token }, () => nowMs)
    const url = await serve(parts)
    const logIn = (presented: string, headers: Record<string, string> = change) =>
      fetch(`${url}/api/session`, { method: 'POST', headers, body: JSON.stringify({ token: presented }) })

    expect((await logIn(`${token}x`)).status).toBe(401)
    expect((await logIn(token, {})).status).toBe(403)
    const answer = await logIn(token)
    expect(answer.status).toBe(204)
    const [cookie = ''] = answer.headers.getSetCookie()
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    expect(cookie).not.toContain(token)
    const pods = () => fetch(`${url}/api/pods`, { headers: { cookie: cookie.split(';')[0] ?? '' } })
    expect((await pods()).status).toBe(200)
    nowMs += 12 * 3600 * 1000
    expect((await pods()).status).toBe(401)
  })

  test.each([
    { name: 'without the header', headers: {}, status: 403 },
    { name: 'of another site', headers: { ...change, 'sec-fetch-site': 'cross-site' }, status: 403 },
    { name: 'of the same origin', headers: { ...change, 'sec-fetch-site': 'same-origin' }, status: 200 },
  ])('a deletion $name: $status', async ({ headers, status }) => {
    const parts = operatorsParts()
    const id = await create(parts, alice)
    const answer = await fetch(`${await serve(parts)}/api/sessions/${id}`, { method: 'DELETE', headers })
    expect(answer.status).toBe(status)
    expect((await parts.store.counts()).sessions).toBe(status === 200 ? 0 : 1)
  })
})

describe('sessions', () => {
  test('who has an id sees the session with its timeline', async () => {
    const parts = operatorsParts()
    const id = await create(parts, alice)
    const usage = { promptTokens: 100, outputTokens: 5, cachedTokens: 90 }
    parts.activity.turnEnded('completed', usage, turnOf(id))

    const answer = await fetch(`${await serve(parts)}/api/sessions/${id}`)
    expect(await answer.json()).toMatchObject({
      digest: sessionKeyOf(id).slice(0, 8),
      tenant: alice.slice(0, 22),
      model: 'tiny',
      namedBy: 'thread-id',
      turns: 1,
      tokens: { prompt: 10, output: 2, cached: 0 },
      pod: 'p:1',
      timeline: [
        { kind: 'created' },
        {
          kind: 'turn',
          pod: '10.0.0.1:8000',
          outcome: 'completed',
          tier: 'store',
          tokens: 90,
          loadMs: 7,
          ttftMs: 21,
          promptTokens: 100,
          cachedTokens: 90,
          outputTokens: 5,
        },
      ],
    })
  })

  test('a list names no id, and can be narrowed to a tenant and to a model', async () => {
    const parts = operatorsParts()
    const ids = [await create(parts, alice), await create(parts, alice, 'large'), await create(parts, bob)]
    const url = await serve(parts)
    const list = async (query: string) => await (await fetch(`${url}/api/sessions?${query}`)).text()
    const digests = async (query: string) =>
      JSON.parse(await list(query)).data.map(({ digest }: { readonly digest: string }) => digest)
    const digestsOf = (...of: readonly (string | undefined)[]) => of.map((id = '') => sessionKeyOf(id).slice(0, 8))

    const text = await list('')
    for (const id of ids) expect(text).not.toContain(id)
    expect(await digests('')).toEqual(digestsOf(ids[2], ids[1], ids[0]))
    expect(await digests(`tenant=${alice.slice(0, 22)}`)).toEqual(digestsOf(ids[1], ids[0]))
    expect(await digests('model=tiny')).toEqual(digestsOf(ids[2], ids[0]))
    expect(JSON.parse(await list('limit=2')).next).toEqual(expect.any(String))
    expect(await digests(`limit=2&after=${JSON.parse(await list('limit=2')).next}`)).toEqual(digestsOf(ids[0]))
  })

  test.each([
    { path: '/api/sessions/ctx_unknown', status: 404 },
    { path: '/api/sessions/..%2f', status: 404 },
    { path: '/api/sessions?limit=0', status: 400 },
    { path: '/api/sessions?limit=101', status: 400 },
    { path: '/api/sessions?tenant=short', status: 400 },
    { path: '/api/nothing', status: 404 },
  ])('GET $path: $status', async ({ path, status }) => {
    const answer = await fetch(`${await serve(operatorsParts())}${path}`)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toEqual({ error: { code: expect.any(String), message: expect.any(String) } })
  })
})

describe('tenants', () => {
  const pathOf = (tenant: TenantKey) => `/api/tenants/${tenant.slice(0, 22)}`

  test('use is that of one tenant', async () => {
    const parts = operatorsParts()
    for (const tenant of [alice, alice, bob]) await create(parts, tenant)
    const answer = await fetch(`${await serve(parts)}${pathOf(alice)}`)
    expect(await answer.json()).toEqual({
      tenant: alice.slice(0, 22),
      sessions: 2,
      namedSessions: 0,
      storedBytes: 0,
      turns: 2,
      tokens: { prompt: 20, output: 4, cached: 0 },
      complete: true,
    })
  })

  test('an erasure ends all sessions of one tenant, those included that begin meanwhile, and is told once each', async () => {
    const parts = operatorsParts()
    for (let index = 0; index < 250; index += 1) await create(parts, alice)
    await create(parts, bob)
    const url = await serve(parts)
    const erase = async () => {
      const answer = await fetch(`${url}${pathOf(alice)}`, { method: 'DELETE', headers: change })
      return z.looseObject({ sessions: z.int() }).parse(await answer.json())
    }
    const [erased] = await Promise.all([erase(), create(parts, alice)])

    const { sessions } = erased
    expect(erased).toEqual({ tenant: alice.slice(0, 22), sessions, cachedAnswers: 0, complete: true })
    const again = await erase()
    expect([sessions + again.sessions, (await parts.store.counts()).sessions]).toEqual([251, 1])
    expect(parts.erased).toHaveLength(2)
  })

  test.each([
    { name: 'without the header that no foreign page sends', path: pathOf(alice), headers: {}, status: 403 },
    { name: 'of a name that is too short', path: '/api/tenants/short', headers: change, status: 405 },
    { name: 'of a name of wrong characters', path: `/api/tenants/${'%20'.repeat(22)}`, headers: change, status: 405 },
  ])('an erasure $name: $status', async ({ path, headers, status }) => {
    const answer = await fetch(`${await serve(operatorsParts())}${path}`, { method: 'DELETE', headers })
    expect(answer.status).toBe(status)
  })
})

describe('what was seen', () => {
  test('counts, times and samples of turns are in the overview and at their pod', async () => {
    let nowMs = 1_000_000
    const parts = operatorsParts({}, () => nowMs)
    const id = newSessionId()
    parts.activity.turnEnded('completed', { promptTokens: 100, outputTokens: 5, cachedTokens: 90 }, turnOf(id))
    parts.activity.loadBegan('10.0.0.1:8000')
    nowMs += 12_000

    expect(await parts.api.overview()).toMatchObject({
      totals: {
        turns: { completed: 1, failed: 0 },
        lookups: { gpu: 0, cpu: 0, store: 1, miss: 0 },
        namedBy: { 'thread-id': 1 },
        promptTokens: { cached: 90, computed: 10 },
        prefillSeconds: { saved: 1.5, computed: 0.25 },
      },
      ttftMs: { hit: { count: 1, p50: 21, p90: 21 }, miss: null, none: null },
      samples: [
        { turns: 1, store: 1, savedSeconds: 1.5 },
        { turns: 0, store: 0 },
      ],
    })
    const pod = { turns: 1, hits: 1, loadsUnderWay: 1, loadMsP50: 7 }
    expect(parts.api.pods()).toMatchObject({ pools: [{ pods: [pod] }] })
  })

  test('an idle day leaves ten minutes of samples', async () => {
    let nowMs = 1_000_000
    const { activity } = operatorsParts({}, () => nowMs)
    activity.turnEnded('completed', undefined, turnOf(newSessionId()))
    nowMs += 86_400_000
    const samples = activity.samples()
    expect(samples).toHaveLength(120)
    expect(Date.parse(samples.at(-1)?.at ?? '')).toBeGreaterThan(nowMs - 10_001)
    expect(samples.every(({ turns }) => turns === 0)).toBe(true)
  })

  test('everyone who connects gets the last sample', async () => {
    let nowMs = 1_000_000
    const url = await serve(operatorsParts({}, () => nowMs))
    nowMs += 6_000
    for (let client = 0; client < 2; client += 1) {
      const reader = (await fetch(`${url}/api/events`)).body?.getReader()
      const first = await reader?.read()
      expect(Buffer.from(first?.value ?? []).toString()).toContain('"sample":{"at":"1970-01-01T00:16:40.000Z"')
    }
  })

  test('a stream that opens while others get their events begins with its head', async () => {
    const parts = operatorsParts()
    const answers: (() => void)[] = []
    const overview = () => new Promise<Readonly<Record<string, unknown>>>((resolve) => answers.push(() => resolve({})))
    const url = await serve({ ...parts, api: { ...parts.api, overview } })
    const answer = async (index: number): Promise<void> => {
      await eventually(() => answers.length > index)
      answers[index]?.()
    }
    const open = () => fetch(`${url}/api/events`)

    const first = open()
    await answer(0)
    await first
    await eventually(() => answers.length > 1)
    const second = open()
    await eventually(() => answers.length > 2)
    answers[1]?.()
    await eventually(() => answers.length > 3)
    answers[2]?.()
    expect((await second).headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  })

  test('events come at once and go on', async () => {
    const answer = await fetch(`${await serve(operatorsParts())}/api/events`)
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const names: string[] = []
    for await (const chunk of answer.body ?? []) {
      for (const [, name = ''] of Buffer.from(chunk)
        .toString()
        .matchAll(/^event: (\w+)$/gm))
        names.push(name)
      if (names.length >= 4) break
    }
    expect(names.slice(0, 4)).toEqual(['overview', 'pods', 'overview', 'pods'])
  })
})
