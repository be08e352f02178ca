import { beforeEach, describe, expect, test } from '@jest/globals'
import type { Decision, ResponseObserver } from '../../../src/context/context-cache-manager.ts'
import type { TokenTotals } from '../../../src/sessions/session-record.ts'
import { type ContextGateway, createContextGateway, type SentRequest } from '../../support/context-gateway.ts'
import { forwarded, rejection } from '../../support/decisions.ts'
import { gatewayRequest, watchedScope } from '../../support/gateway-request.ts'

const body = { model: 'm', prompt: 'Say this is a test', temperature: 0 }
const answer = Buffer.from(
  JSON.stringify({
    choices: [{ text: 'a', finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } },
  }),
)

let gateway: ContextGateway
beforeEach(() => {
  gateway = createContextGateway({ cachedModels: ['m', 'other'] })
})

const asked = (part: Partial<SentRequest> = {}): SentRequest => ({
  path: '/v1/completions',
  body,
  ...part,
  headers: { 'x-response-cache': 'on', ...part.headers },
})
const ask = (part: Partial<SentRequest> = {}): Promise<Decision> => gateway.send(asked(part))

const observerOf = (decision: Decision): ResponseObserver | undefined =>
  decision.kind === 'passthrough' || decision.kind === 'forward' ? decision.observer : undefined

/** An engine answers what was decided on. */
const answerWith = (decision: Decision, bytes: Buffer = answer): void => {
  const observer = observerOf(decision)
  observer?.head(200, (name) => (name === 'content-type' ? ['application/json'] : []))
  observer?.chunk(bytes)
  observer?.end('complete')
}

const cachedResponseOf = (decision: Decision) => {
  if (decision.kind !== 'cached-response') throw new Error(`not from the cache: ${decision.kind}`)
  return decision
}

/** Fills the cache with the answer to the usual request. */
const fill = async (part: Partial<SentRequest> = {}): Promise<void> => answerWith(await ask(part))

describe('without a session', () => {
  test('the first request is computed and marked, the second one is answered from the cache', async () => {
    const first = await ask()
    expect(first).toMatchObject({
      kind: 'passthrough',
      destinations: [],
      observer: { setHeaders: { 'x-response-cache': 'miss' } },
    })
    answerWith(first)
    expect(cachedResponseOf(await ask())).toEqual({
      kind: 'cached-response',
      contentType: 'application/json',
      body: answer,
      headers: { 'x-response-cache': 'hit' },
    })
  })

  test('an id of another system does not matter', async () => {
    await fill()
    expect((await ask({ headers: { 'x-session-id': 'theirs' } })).kind).toBe('cached-response')
  })

  test.each<[string, Partial<SentRequest>]>([
    ['asks for nothing', { headers: { 'x-response-cache': 'off' } }],
    ['forbids it', { headers: { 'cache-control': 'no-cache' } }],
    ['forbids it among other things', { headers: { 'cache-control': 'max-age=0, No-Store' } }],
    ['is longer than entries may be', { headers: { 'content-length': '10001' } }],
    ['is compressed', { headers: { 'content-encoding': 'gzip' } }],
    ['is sampled', { body: { ...body, temperature: 1 } }],
    ['has another model', { body: { ...body, model: 'unlisted' } }],
    ['is no JSON', { body: Buffer.from('{"model"') }],
    ['has a number that a double cannot hold', { body: { ...body, seed: 2 ** 53 } }],
    ['has no credential', { headers: { authorization: '' } }],
  ])('a request goes on unmarked that %s', async (_name, part) => {
    await fill()
    expect(await ask(part)).toEqual({ kind: 'passthrough', destinations: [] })
  })

  test.each<[string, Partial<SentRequest>, Decision['kind']]>([
    ['another tenant', { as: 'key-b' }, 'passthrough'],
    ['another path', { path: '/v1/completions?x=1' }, 'passthrough'],
    ['another form of answer', { body: { ...body, stream: true } }, 'passthrough'],
    ['another prompt', { body: { ...body, prompt: 'else' } }, 'passthrough'],
    ['another user of the same tenant', { body: { ...body, user: 'u' } }, 'cached-response'],
    ['another order of members', { body: { temperature: 0, prompt: body.prompt, model: 'm' } }, 'cached-response'],
  ])('%s', async (_name, part, kind) => {
    await fill()
    expect((await ask(part)).kind).toBe(kind)
  })

  test.each([
    ['a request whose body Envoy does not send', { path: '/v1/completions', bodyReadable: false }],
    ['a message of Anthropic’s API', { path: '/v1/messages' }],
  ])('%s is decided from its headers', async (_name, part) => {
    const headers = { 'x-response-cache': 'on', authorization: 'Bearer key-a' }
    const request = gatewayRequest({ ...part, headers })
    expect(await gateway.service.onHeaders(request, watchedScope())).toEqual({ kind: 'passthrough', destinations: [] })
  })
})

describe('in a session', () => {
  const inSession = (id: string, part: Partial<SentRequest> = {}): Promise<Decision> =>
    ask({ ...part, headers: { 'x-session-id': id, ...part.headers } })

  interface Shown {
    readonly turns: number
    readonly tokens: TokenTotals
    readonly kv: unknown
    readonly expires_at: number
  }
  const shown = async (id: string) => (await gateway.view(id)) as Shown

  test('a computed turn is an ordinary turn, and its response is cached', async () => {
    const { id } = await gateway.create()
    const forward = forwarded(await inSession(id))
    expect(forward).toMatchObject({ expectModel: 'm', observer: { setHeaders: { 'x-response-cache': 'miss' } } })
    answerWith(forward)
    expect((await inSession(id)).kind).toBe('cached-response')
    expect((await ask()).kind).toBe('cached-response')
  })

  test('a turn from the cache counts, with its tokens, on no pod', async () => {
    const { id } = await gateway.create()
    await fill()
    const before = await shown(id)
    const inFlight = gateway.pods.pods().map((pod) => pod.inFlight)

    const { headers } = cachedResponseOf(await inSession(id))

    const after = await shown(id)
    expect(headers).toMatchObject({
      'x-session-id': id,
      'x-context-cache': 'none; reason=response_cached',
      'x-response-cache': 'hit',
    })
    expect(after).toMatchObject({ turns: before.turns + 1, kv: before.kv })
    expect(after.tokens).toEqual({
      prompt: before.tokens.prompt + 7,
      output: before.tokens.output + 3,
      cached: before.tokens.cached + 2,
    })
    expect(gateway.pods.pods().map((pod) => pod.inFlight)).toEqual(inFlight)
  })

  test('a turn from the cache is answered and ends once, also while the store cannot count it', async () => {
    const { id } = await gateway.create()
    await fill()
    const before = gateway.events.of('turnEnded').length
    gateway.store.failNext('complete', 1)
    expect((await inSession(id)).kind).toBe('cached-response')
    expect(gateway.events.of('turnEnded').slice(before)).toMatchObject([['completed', {}, { model: 'm' }]])
  })

  test.each([
    ['an absolute deadline stays', false, {}, 3600 - 100],
    ['a sliding one moves', true, {}, 3600],
    ['one that is sent is set', false, { 'x-session-ttl': '50' }, 50],
  ] as const)('%s', async (_name, sliding, headers, secondsLeft) => {
    gateway = createContextGateway({ cachedModels: ['m'], sliding })
    const { id } = await gateway.create()
    await fill()
    gateway.advance(100)
    const decision = cachedResponseOf(await inSession(id, { headers }))
    const expected = gateway.nowMs() + secondsLeft * 1000
    expect((await shown(id)).expires_at * 1000).toBe(expected)
    expect(decision.headers['x-session-expires-at']).toBe(new Date(expected).toISOString())
  })

  test('a session of another model rejects the request', async () => {
    const { id } = await gateway.create()
    const other = { ...body, model: 'other' }
    await fill({ body: other })
    expect(forwarded(await inSession(id, { body: other })).expectModel).toBe('m')
  })

  test('an expired session starts anew with a computed turn', async () => {
    const { id } = await gateway.create()
    await fill()
    gateway.advance(4000)
    expect(forwarded(await inSession(id)).responseHeaders['x-context-cache']).toBe('miss; reason=session_expired')
  })

  test.each([
    ['unknown', 'session_not_found', async () => `ctx_${'a'.repeat(32)}`],
    [
      'deleted',
      'session_deleted',
      async () => {
        const { id } = await gateway.create()
        await gateway.remove(id)
        return id
      },
    ],
  ])('a turn of a session that is %s is answered without a session', async (_name, reason, idOf) => {
    const id = await idOf()
    await fill()
    const { headers } = cachedResponseOf(await inSession(id))
    expect(headers).toEqual({ 'x-context-cache': `miss; reason=${reason}`, 'x-response-cache': 'hit' })
  })

  test('unknownSession reject wins over a cached response', async () => {
    gateway = createContextGateway({ cachedModels: ['m'], unknownSession: 'reject' })
    await fill()
    expect(rejection(await inSession(`ctx_${'a'.repeat(32)}`)).code).toBe('session_not_found')
  })

  test('a turn is answered while the session store is unavailable', async () => {
    const { id } = await gateway.create()
    await fill()
    gateway.store.failNext('begin', 1)
    expect(cachedResponseOf(await inSession(id)).headers).toMatchObject({
      'x-context-cache': 'miss; reason=store_unavailable',
    })
  })
})

test.each([
  ['POST /v1/context', { path: '/v1/context' }],
  ['a time to live', { headers: { 'x-session-ttl': '60' } }],
])('a create by %s is always computed, and its answer not kept', async (_name, part) => {
  await fill()
  const created = forwarded(await ask(part))
  expect(created.observer).toBeUndefined()
})

test('the header has no effect while the cache is off', async () => {
  gateway = createContextGateway()
  expect(await ask()).toEqual({ kind: 'passthrough', destinations: [] })
})
