import { describe, expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { exchangeRaw, headerOf, rawRequest, readMessages, readWhole } from '../support/raw-http.ts'
import { createdId, unknownId } from '../support/sessions.ts'
import { wiring } from '../support/stack.ts'
import { fixture } from './shared-fixture.ts'
import {
  anyResponse,
  asJson,
  askRaw,
  credential,
  expectRefusal,
  rawReading,
  someBody,
  someJson,
  watching,
  wellFramed,
} from './support.ts'

/** A pod behind an endpoint picker receives its own address. */
const internalHeaders =
  wiring === 'picker'
    ? /^x-gateway-destination-endpoint-|^target-pod|^x-context-request-key/
    : /^x-gateway|^target-pod|^x-context-request-key/

const standing = ['host: gateway', 'connection: close', credential, asJson]

const routes = [
  { route: 'without a session', start: 'POST /v1/completions HTTP/1.1', own: [] },
  { route: 'use', start: 'POST /v1/completions HTTP/1.1', own: [`x-session-id: ${unknownId}`] },
  { route: 'create', start: 'POST /v1/context HTTP/1.1', own: [] },
  { route: 'create by x-session-ttl', start: 'POST /v1/completions HTTP/1.1', own: ['x-session-ttl: 60'] },
]

describe('headers beyond the limits', () => {
  const many = [
    { name: 'one of 61 KB', headers: [`x-large: ${'x'.repeat(61 * 1024)}`] },
    { name: '70 of 1 KB', headers: Array.from({ length: 70 }, (_, index) => `x-${index}: ${'x'.repeat(1024)}`) },
    { name: 'more than a hundred', headers: Array.from({ length: 101 }, (_, index) => `x-${index}: 1`) },
    { name: 'one session id of 61 KB', headers: [`x-session-id: ${'x'.repeat(61 * 1024)}`] },
  ]

  test.each(routes.flatMap((route) => many.map((value) => ({ ...route, ...value }))))(
    'get 431 ($route): $name',
    async ({ start, own, headers }) => {
      const length = `content-length: ${someJson.length}`
      const request = rawRequest({
        startLine: start,
        headers: [...standing, ...own, ...headers, length],
        body: someJson,
      })

      const { result, arrivals } = await watching(fixture, () => askRaw(fixture.stack, request))

      expectRefusal(result, { status: 431, code: 'request_headers_too_large' })
      expect(arrivals).toEqual([])
    },
  )

  test('are refused in the path, too', async () => {
    const request = wellFramed(`GET /v1/context/${'x'.repeat(61 * 1024)}`, { headers: [credential] })

    expectRefusal(await askRaw(fixture.stack, request), { status: 431, code: 'request_headers_too_large' })
  })
})

describe('framing', () => {
  const length = `content-length: ${someJson.length}`
  const chunked = 'transfer-encoding: chunked'
  const inChunks = `${someJson.length.toString(16)}\r\n${someJson}\r\n0\r\n\r\n`
  const hidden = 'GET /smuggled HTTP/1.1\r\nhost: gateway\r\n\r\n'

  const malformed = [
    { name: 'a length and chunks', headers: [length, chunked], body: inChunks },
    { name: 'chunks and a length', headers: [chunked, 'content-length: 4'], body: inChunks },
    { name: 'two lengths', headers: [length, 'content-length: 4'], body: someJson },
    { name: 'the same length twice', headers: [length, length], body: someJson },
    { name: 'two lengths in one', headers: [`${length}, ${someJson.length}`], body: someJson },
    { name: 'a signed length', headers: [`content-length: +${someJson.length}`], body: someJson },
    { name: 'a negative length', headers: ['content-length: -1'], body: someJson },
    { name: 'a hexadecimal length', headers: ['content-length: 0x10'], body: someJson },
    { name: 'an empty length', headers: ['content-length:'], body: someJson },
    { name: 'a length beyond 64 bits', headers: ['content-length: 99999999999999999999'], body: someJson },
    { name: 'a blank before the colon', headers: [`content-length : ${someJson.length}`], body: someJson },
    { name: 'a blank before the colon of chunks', headers: ['transfer-encoding : chunked'], body: inChunks },
    { name: 'an invalid chunk size', headers: [chunked], body: `zz\r\n${inChunks}` },
    { name: 'a negative chunk size', headers: [chunked], body: '-5\r\nhello\r\n0\r\n\r\n' },
    { name: 'a chunk size beyond 64 bits', headers: [chunked], body: 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n' },
    { name: 'chunks that end in line feeds', headers: [chunked], body: '5\nhello\n0\n\n' },
    { name: 'a chunk that is longer than it says', headers: [chunked], body: '5\r\nhelloX0\r\n\r\n' },
    { name: 'a vertical tab before the encoding', headers: ['transfer-encoding: \x0bchunked'], body: inChunks },
    { name: 'a NUL in a value', headers: ['x-a: a\0b', length], body: someJson },
    { name: 'a NUL in a name', headers: ['x-\0a: b', length], body: someJson },
    { name: 'a length behind a bare line feed', headers: ['x-a: a\ncontent-length: 3', length], body: someJson },
    { name: 'a header without a name', headers: [': b', length], body: someJson },
    { name: 'a line without a colon', headers: ['x-a', length], body: someJson },
    { name: 'a header that begins with a blank', headers: [' x-a: b', length], body: someJson, first: true },
  ]

  test.each(routes.flatMap((route) => malformed.map((value) => ({ ...route, ...value }))))(
    'that is ambiguous is refused ($route): $name',
    async ({ start, own, headers, body, first = false }) => {
      const all = first ? [...headers, ...standing, ...own] : [...standing, ...own, ...headers]
      const request = rawRequest({ startLine: start, headers: all, body: body + hidden })

      const { result, arrivals } = await watching(fixture, () => exchangeRaw(fixture.stack.port, request))

      const responses = readMessages(result).map(rawReading)
      expect(responses).toHaveLength(1)
      for (const response of responses) expectRefusal(response, { status: 400, code: 'bad_request' })
      expect(arrivals).toEqual([])
    },
  )

  test.each(
    ['xchunked', 'identity', 'chunked, identity', 'gzip, chunked', 'chunked, chunked'].flatMap((encoding) =>
      routes.map((route) => ({ ...route, encoding })),
    ),
  )('in an unknown transfer encoding is refused ($route): $encoding', async ({ start, own, encoding }) => {
    const headers = [...standing, ...own, `transfer-encoding: ${encoding}`]
    const request = rawRequest({ startLine: start, headers, body: inChunks + hidden })

    const { result, arrivals } = await watching(fixture, () => askRaw(fixture.stack, request))

    expectRefusal(result, { status: 501, code: 'bad_request' })
    expect(arrivals).toEqual([])
  })

  const tidied = [
    { name: 'a folded header', headers: ['x-a: a\r\n b'], arrived: { 'x-a': 'a b' } },
    {
      name: 'a length in a folded header',
      headers: ['x-a: a\r\n content-length: 5'],
      arrived: { 'x-a': 'a content-length: 5' },
    },
    { name: 'a bare carriage return', headers: ['x-a: a\rb'], arrived: { 'x-a': 'ab' } },
    {
      name: 'a length behind a carriage return',
      headers: ['x-a: a\rcontent-length: 3'],
      arrived: { 'x-a': 'acontent-length: 3' },
    },
    { name: 'a bare line feed', headers: ['x-a: a\nx-b: b'], arrived: { 'x-a': 'a', 'x-b': 'b' } },
    { name: 'a session id with an underscore', headers: [`x_session_id: ${unknownId}`], arrived: {} },
  ]

  test.each(routes.flatMap((route) => tidied.map((value) => ({ ...route, ...value }))))(
    'that is unusual reaches one pod once, as one request ($route): $name',
    async ({ start, own, headers, arrived }) => {
      const all = [...standing, ...own, ...headers, length]
      const request = rawRequest({ startLine: start, headers: all, body: someJson + hidden })

      const { result, arrivals } = await watching(fixture, () => askRaw(fixture.stack, request))

      expect(result.status).toBe(200)
      expect(arrivals).toMatchObject([{ request: { body: someJson, headers: arrived } }])
      const [arrival] = arrivals
      expect(arrival?.request.headers).not.toHaveProperty('x_session_id')
      expect(arrival?.request.headers['content-length'] ?? String(someJson.length)).toBe(String(someJson.length))
    },
  )

  test.each(routes)('with extensions of a chunk reaches one pod once ($route)', async ({ start, own }) => {
    const body = `${someJson.length.toString(16)};a="b"\r\n${someJson}\r\n0\r\nx-trailer: t\r\n\r\n`
    const request = rawRequest({ startLine: start, headers: [...standing, ...own, chunked], body: body + hidden })

    const { result, arrivals } = await watching(fixture, () => askRaw(fixture.stack, request))

    expect(result.status).toBe(200)
    expect(arrivals).toMatchObject([{ request: { body: someJson } }])
  })

  // Without a session nothing holds a request back: its pod waits for the rest and is left with it.
  test.each(routes.slice(1))('that promises more than comes reaches no pod ($route)', async ({ start, own }) => {
    const complete = rawRequest({
      startLine: start,
      headers: [...standing, ...own, `content-length: ${someJson.length + 1}`],
      body: someJson,
    })
    const cutShort = async (): Promise<void> => {
      await expect(exchangeRaw(fixture.stack.port, complete, { timeoutMs: 300 })).rejects.toThrow('stayed open')
    }

    // A pod records whole requests alone.
    const cutAtPods = () => fixture.pods.flatMap((pod) => pod.wire()).filter((bytes) => readWhole(bytes).isCut).length
    const before = cutAtPods()
    const { arrivals } = await watching(fixture, cutShort)

    expect([arrivals, cutAtPods()]).toEqual([[], before])
  })

  const refusedStarts = [
    { name: 'no host', startLine: 'POST /v1/context HTTP/1.1', headers: standing.slice(1), status: 400 },
    { name: 'an old version', startLine: 'POST /v1/context HTTP/1.0', headers: standing, status: 426 },
    { name: 'an unknown version', startLine: 'POST /v1/context HTTP/9.9', headers: standing, status: 426 },
    { name: 'a method in small letters', startLine: 'post /v1/context HTTP/1.1', headers: standing, status: 400 },
    { name: 'a blank in the path', startLine: 'POST /v1/con text HTTP/1.1', headers: standing, status: 400 },
    {
      name: 'another protocol',
      startLine: 'POST /v1/context HTTP/1.1',
      headers: [
        ...standing.filter((header) => !header.startsWith('connection')),
        'connection: upgrade',
        'upgrade: websocket',
      ],
      status: 403,
    },
  ]

  test.each(refusedStarts)('with $name is refused', async ({ startLine, headers, status }) => {
    const request = rawRequest({ startLine, headers: [...headers, length], body: someJson })

    const { result, arrivals } = await watching(fixture, () => askRaw(fixture.stack, request))

    expectRefusal(result, { status, code: 'bad_request' })
    expect(arrivals).toEqual([])
  })
})

describe('a path that is written in another way', () => {
  const list = { object: 'list', data: [], first_id: null, last_id: null, has_more: false }
  const newcomer = 'authorization: Bearer a-newcomer'

  const same = [
    '//v1//context',
    '/v1///context',
    '/v1/./context',
    '/v1/x/../context',
    '/v1/context/%2e%2e/context',
    '/v1/context/../context',
    '/v1/%63ontext',
    '/v1\\context',
    'http://elsewhere/v1/context',
  ]

  test.each(same)('is the same path, with the same need of a credential: %s', async (path) => {
    const known = await askRaw(fixture.stack, wellFramed(`GET ${path}`, { headers: [newcomer] }))
    const unknown = await askRaw(fixture.stack, wellFramed(`GET ${path}`))

    expect([known.status, JSON.parse(known.text)]).toEqual([200, list])
    expectRefusal(unknown, { status: 401, code: 'invalid_api_key', type: 'authentication_error' })
  })

  test.each(['//v1//completions', '/v1/context/../completions', '/v1/%63ompletions'])(
    'is the same inference path: %s',
    async (path) => {
      const headers = [credential, asJson, `x-session-id: ${unknownId}`]

      const response = await askRaw(fixture.stack, wellFramed(`POST ${path}`, { headers, body: someJson }))

      expect(response.header('x-context-cache')).toBe('miss; reason=session_not_found')
    },
  )
})

describe('headers that only the gateway may set', () => {
  const forbidden = [
    'x-gateway-destination-endpoint',
    'x-gateway-destination-endpoint-subset',
    'x-gateway-destination-endpoint-served',
    'target-pod',
    'x-context-cache',
    'x-session-expires-at',
    'x-context-request-key',
  ]

  test.each(routes)('are not taken from a client, which cannot choose the pod of a request ($route)', async (route) => {
    const { stack } = fixture
    const targets = [stack.envoy.adminAddress, new URL(stack.gateway().adminUrl).host, fixture.pod.address]
    const seen: string[] = []
    for (const target of targets) {
      const claims = forbidden.flatMap((name) => [`${name}: ${target}`, `${name.toUpperCase()}: ${target}`])
      // In turns, where the gateway chooses; by chance, where Envoy does.
      const strategy = 'routing-strategy: round-robin'
      const headers = [...standing, ...route.own, strategy, ...claims, 'x-envoy-original-dst-host: 127.0.0.1:1']
      const length = `content-length: ${someJson.length}`
      const request = rawRequest({ startLine: route.start, headers: [...headers, length], body: someJson })

      for (const _ of Array(8).keys()) {
        const { result, arrivals } = await watching(fixture, () => askRaw(stack, request))

        expect(result.status).toBe(200)
        expect(JSON.parse(result.text)).toMatchObject({ object: 'text_completion' })
        expect(arrivals).toHaveLength(1)
        for (const { pod, request: arrived } of arrivals) {
          expect(Object.keys(arrived.headers)).not.toEqual(
            expect.arrayContaining([expect.stringMatching(internalHeaders)]),
          )
          seen.push(pod)
        }
      }
    }
    expect(new Set(seen).size).toBe(2)
  })

  test('is not taken from a pod: the response of a turn names only the gateway’s session', async () => {
    const claims = { 'x-session-id': `ctx_${'p'.repeat(32)}`, 'x-context-cache': 'hit; tier=gpu; tokens=1' }
    for (const pod of fixture.pods) pod.otherwise((_request, reply) => reply.json(200, {}, claims))
    const turn = async (id: string): Promise<readonly (string | null)[]> => {
      const headers = { 'x-session-id': id }
      const response = await call(`${fixture.stack.url}/v1/completions`, { headers, body: someBody })
      return [response.headers.get('x-session-id'), response.headers.get('x-context-cache')]
    }

    const id = await createdId(fixture.stack)
    const turns = [await turn(id), await turn(unknownId)]

    for (const pod of fixture.pods) pod.otherwise(anyResponse)
    expect(id).not.toBe(claims['x-session-id'])
    expect(turns).toEqual([
      [id, expect.stringMatching(/^(miss|none); reason=/)],
      [null, 'miss; reason=session_not_found'],
    ])
  })
})

test('pods receive well-formed requests alone, one after the other', () => {
  for (const pod of fixture.pods) {
    const messages = pod.wire().flatMap((bytes) => readWhole(bytes).messages)
    // The gateway's checks do not pass Envoy, and Envoy has checks of its own.
    const forwarded = messages.filter((message) => headerOf(message, 'x-forwarded-proto').length > 0)
    const inference = forwarded
      .map(({ startLine }) => startLine)
      .filter((startLine) => !startLine.startsWith('GET /health '))

    expect(inference.sort()).toEqual(
      pod
        .requests()
        .map(({ method, path }) => `${method} ${path} HTTP/1.1`)
        .sort(),
    )
    expect(inference.length).toBeGreaterThan(20)
    expect(inference).not.toContainEqual(expect.stringContaining('smuggled'))
  }
})
