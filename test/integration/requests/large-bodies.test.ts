import { describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { untilTurnsEnd } from '../support/metrics.ts'
import { openai } from '../support/openai-client.ts'
import { rawRequest, readMessages, uploadRaw } from '../support/raw-http.ts'
import { view } from '../support/sessions.ts'
import { useFixture } from './fixture.ts'
import {
  asJson,
  credential,
  expectRefusal,
  listed,
  type Reading,
  rawReading,
  reading,
  someBody,
  watching,
} from './support.ts'

const fixture = useFixture()

const mebibyte = 1024 * 1024
const limit = 16 * mebibyte

/** A body of exactly so many bytes. */
const bodyOf = (bytes: number): string => {
  const empty = JSON.stringify({ model, prompt: '' })
  return JSON.stringify({ model, prompt: 'x'.repeat(bytes - empty.length) })
}

const routes = [
  { route: 'create by POST /v1/context', path: '/v1/context', own: () => [] },
  { route: 'create by x-session-ttl', path: '/v1/completions', own: () => ['x-session-ttl: 3600'] },
  { route: 'use', path: '/v1/completions', own: () => [`x-session-id: ${fixture.sessionId}`] },
]

const framings = [
  {
    framing: 'content-length',
    header: (bytes: number) => `content-length: ${bytes}`,
    frame: (piece: Buffer) => [piece],
  },
  {
    framing: 'chunked',
    header: () => 'transfer-encoding: chunked',
    frame: (piece: Buffer) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')],
  },
]

const pieceBytes = 65_536

function* piecesOf(body: string, frame: (piece: Buffer) => readonly Buffer[]): Generator<Buffer> {
  for (let at = 0; at < body.length; at += pieceBytes) yield* frame(Buffer.from(body.slice(at, at + pieceBytes)))
  yield* frame(Buffer.alloc(0))
}

const cases = routes.flatMap((route) => framings.map((framing) => ({ ...route, ...framing })))

const upload = async ({ path, own, header, frame }: (typeof cases)[number], bytes: number): Promise<Reading> => {
  const head = rawRequest({
    startLine: `POST ${path} HTTP/1.1`,
    headers: ['host: gateway', 'connection: close', credential, asJson, ...own(), header(bytes)],
  })
  const messages = readMessages(await uploadRaw(fixture.stack.port, [head, ...piecesOf(bodyOf(bytes), frame)]))
  const [message] = messages
  if (message === undefined || messages.length > 1) throw new Error(`there are ${messages.length} responses`)
  return rawReading(message)
}

describe('a body of 16 MiB', () => {
  test.each(cases)('reaches the engine unchanged ($route, $framing)', async (one) => {
    const { result, arrivals } = await watching(fixture, () => upload(one, limit))

    expect(result.status).toBe(200)
    expect(arrivals).toHaveLength(1)
    expect(arrivals[0]?.request.body === bodyOf(limit)).toBe(true)
  })
})

describe('a larger body', () => {
  test.each(cases)('is refused ($route, $framing)', async (one) => {
    await untilTurnsEnd(fixture.stack)
    const before = {
      sessions: await listed(fixture.stack),
      turns: (await view(fixture.stack, fixture.sessionId)).turns,
    }

    const { result, arrivals } = await watching(fixture, () => upload(one, limit + mebibyte))

    expectRefusal(result, { status: 413, code: 'request_too_large' })
    expect(arrivals).toEqual([])
    expect({
      sessions: await listed(fixture.stack),
      turns: (await view(fixture.stack, fixture.sessionId)).turns,
    }).toEqual(before)
  })

  test.each([
    { name: 'POST /v1/context', send: (client: OpenAI, body: object) => client.post('/context', { body }) },
    {
      name: 'a turn',
      send: (client: OpenAI, body: object) =>
        client.post('/completions', { body, headers: { 'x-session-id': fixture.sessionId } }),
    },
  ])('is an error that the SDK understands, and does not send again ($name)', async ({ send }) => {
    // Envoy closes the connection beside its answer: a client that is still sending may not see it, and rightly tries
    // again. So does one that comes while the gateway is too busy for a health check.
    let refusals = 0
    const counting: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (response.status === 413) refusals += 1
      return response
    }
    const client = new OpenAI({
      baseURL: `${fixture.stack.url}/v1`,
      apiKey: 'test-key',
      maxRetries: 2,
      fetch: counting,
    })

    const error = await send(client, { model, prompt: 'x'.repeat(limit) }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )

    expect(error).toBeInstanceOf(OpenAI.APIError)
    expect(error).toMatchObject({ status: 413, code: 'request_too_large' })
    expect(refusals).toBe(1)
  })
})

/** Bodies that are made to be slow to parse. */
const bombs = [
  { name: 'two million brackets', body: `{"model":"tiny-random","prompt":${'['.repeat(2_000_000)}` },
  { name: 'four million empty objects', body: `{"model":"tiny-random","prompt":[{}${',{}'.repeat(4_000_000)}]}` },
  {
    name: 'half a million keys',
    body: `{"model":"tiny-random","prompt":"x","z":{${Array.from({ length: 500_000 }, (_, key) => `"k${key}":1`).join(',')}}}`,
  },
  { name: 'millions of quotes', body: `{"model":"tiny-random","prompt":"x"${',"":""'.repeat(1_000_000)}}` },
  {
    name: 'millions of escapes',
    body: `{"z":{"model":"other"},"model":"tiny-random","prompt":"${'\\"'.repeat(4_000_000)}"}`,
  },
  {
    name: 'other models throughout',
    body: `{${'"z":{"model":"other"},'.repeat(500_000)}"model":"tiny-random","prompt":"x"}`,
  },
  { name: 'blanks', body: `{"model":"tiny-random","prompt":"x"${' '.repeat(8_000_000)}}${' '.repeat(6_000_000)}` },
]

describe('bodies that are slow to parse', () => {
  /** Sent while the bombs are under way. */
  const innocent = () => [
    openai(fixture.stack.url).completions.create({ ...someBody }),
    openai(fixture.stack.url, { headers: { 'x-session-id': fixture.sessionId } }).completions.create({ ...someBody }),
    openai(fixture.stack.url, { headers: { 'x-session-ttl': '60' } }).completions.create({ ...someBody }),
  ]

  test.each(bombs.slice(0, 3))('fail no other request when they create: $name', async ({ body }) => {
    const responses = [1, 2, 3].map(() => call(`${fixture.stack.url}/v1/context`, { rawBody: body }))

    await expect(Promise.all(innocent())).resolves.toHaveLength(3)

    for (const response of await Promise.all(responses)) expect([200, 400]).toContain(response.status)
  })

  test.each(bombs.slice(3))('fail no other request when they are turns: $name', async ({ body }) => {
    const headers = { 'x-session-id': fixture.sessionId }
    const { result } = await watching(fixture, async () => {
      const responses = [1, 2, 3].map(() => call(`${fixture.stack.url}/v1/completions`, { headers, rawBody: body }))
      await expect(Promise.all(innocent())).resolves.toHaveLength(3)
      return Promise.all(responses)
    })

    for (const response of result) expect([200, 400]).toContain(response.status)
  })

  test.each(bombs.slice(0, 4))('are refused when they create: $name', async ({ body }) => {
    const response = await call(`${fixture.stack.url}/v1/context`, { rawBody: body })

    expectRefusal(reading(response), { status: 400, code: 'json_too_complex' })
  })

  test('leave the gateway ready', async () => {
    await eventually(async () => expect((await call(`${fixture.stack.gateway().adminUrl}/readyz`)).status).toBe(200))
  })
})
