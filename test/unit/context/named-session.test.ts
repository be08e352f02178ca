import { describe, expect, test } from '@jest/globals'
import type { ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import {
  type ContextGateway,
  createContextGateway,
  type GatewaySettings,
  type SentRequest,
} from '../../support/context-gateway.ts'
import { cacheStatusOf, forwarded, sessionIdOf, ticketOf } from '../../support/decisions.ts'

const names = ['x-claude-code-session-id', 'thread-id', 'session-id', 'x-session-id', 'body.prompt_cache_key']
const open = (settings: GatewaySettings = {}) => createContextGateway({ names, ...settings })

/** Headers that Envoy's Lua filter sets for a body. */
const told = (model = 'm', marks = '0000000a'): Readonly<Record<string, string>> => ({
  'x-context-model': model,
  'x-context-marks': marks,
})

type RequestHeaders = NonNullable<SentRequest['headers']>

const turn = (headers: RequestHeaders, more: Partial<SentRequest> = {}): SentRequest => ({
  path: '/v1/chat/completions',
  ...more,
  headers: { ...told(), ...headers },
})

const serve = async (gateway: ContextGateway, request: SentRequest): Promise<ForwardDecision> => {
  const forward = forwarded(await gateway.send(request))
  await gateway.serve(forward)
  return forward
}

describe('a session that a client names', () => {
  test('begins with its first turn, and the next one starts from its KV', async () => {
    const gateway = open()
    const first = await serve(gateway, turn({ 'session-id': 'conversation' }))
    const next = await serve(gateway, turn({ 'session-id': 'conversation' }, { body: undefined }))

    expect(cacheStatusOf(first)).toBe('miss; reason=new_session')
    expect(cacheStatusOf(next)).toMatch(/^hit; tier=/)
    expect(sessionIdOf(next)).toBe(sessionIdOf(first))
    expect(sessionIdOf(first)).toMatch(/^ctx_[\w-]{32}$/)
    expect(first.expectModel).toBeUndefined()
    expect(await gateway.view(sessionIdOf(first))).toMatchObject({
      id: sessionIdOf(first),
      named_by: 'session-id',
      turns: 2,
      model: 'm',
    })
  })

  test('its handle works like any other', async () => {
    const gateway = open()
    const id = sessionIdOf(await serve(gateway, turn({ 'session-id': 'conversation' })))
    const used = await gateway.use(id)
    await gateway.serve(used)

    expect(cacheStatusOf(used)).toMatch(/^hit/)
    expect(await gateway.remove(id)).toMatchObject({ status: 200 })
    await gateway.sweep()
    expect(cacheStatusOf(await serve(gateway, turn({ 'session-id': 'conversation' })))).toBe('miss; reason=new_session')
  })

  test.each<{ readonly other: string; readonly request: SentRequest }>([
    { other: 'another name', request: turn({ 'session-id': 'other' }) },
    { other: 'another header', request: turn({ 'thread-id': 'conversation' }) },
    { other: 'another model', request: turn({ ...told('m2'), 'session-id': 'conversation' }) },
    { other: 'another tenant', request: turn({ 'session-id': 'conversation' }, { as: 'key-b' }) },
    { other: 'another prompt', request: turn({ ...told('m', '0000000b'), 'session-id': 'conversation' }) },
  ])('$other under the same name has other KV', async ({ request }) => {
    const gateway = open()
    await serve(gateway, turn({ 'session-id': 'conversation' }))

    expect(cacheStatusOf(await serve(gateway, request))).toBe('miss; reason=new_session')
    expect(cacheStatusOf(await serve(gateway, turn({ 'session-id': 'conversation' })))).toMatch(/^hit/)
  })

  test("a sub-agent's id is part of the name", async () => {
    const gateway = open()
    const main = await serve(gateway, turn({ 'x-claude-code-session-id': 'a' }))
    const agent = await serve(gateway, turn({ 'x-claude-code-session-id': 'a', 'x-claude-code-agent-id': '1' }))

    expect(sessionIdOf(agent)).not.toBe(sessionIdOf(main))
  })

  test('the first name in the order counts, and an id of the gateway comes before all', async () => {
    const gateway = open()
    const byThread = await serve(gateway, turn({ 'thread-id': 't', 'session-id': 's' }))
    const { id } = await gateway.create()

    expect(sessionIdOf(await serve(gateway, turn({ 'thread-id': 't' })))).toBe(sessionIdOf(byThread))
    expect(sessionIdOf(await serve(gateway, turn({ 'thread-id': 't', 'x-session-id': id })))).toBe(id)
  })

  test('a member of the body names it, as Envoy or the gateway reads it', async () => {
    const gateway = open()
    const byEnvoy = await serve(gateway, turn({ 'x-context-name': 'prompt_cache_key:caf\\u00e9' }))
    const body = { model: 'm', prompt_cache_key: 'café', messages: [{ role: 'user', content: 'hello' }] }
    const byBody = await serve(
      gateway,
      turn({ 'x-context-name': 'prompt_cache_key:k', 'x-context-model': '' }, { body }),
    )

    const byBodyAlone = await serve(gateway, turn({ 'x-context-model': '' }, { body }))

    expect(sessionIdOf(byBody)).toBe(sessionIdOf(byEnvoy))
    expect(sessionIdOf(byBodyAlone)).toBe(sessionIdOf(byEnvoy))
    expect(await gateway.view(sessionIdOf(byBody))).toMatchObject({ named_by: 'body.prompt_cache_key' })
  })

  test('where Envoy cannot tell which model counts, the gateway reads the body', async () => {
    const gateway = open()
    const body = { model: 'm', messages: [{ role: 'user', content: 'hello' }], prompt_cache_key: 'k' }
    const request = turn({ 'session-id': 'conversation', 'x-context-model': '' }, { body })
    const first = await serve(gateway, request)
    const longer = { ...body, messages: [...body.messages, { role: 'assistant', content: 'hi' }] }
    const next = await serve(gateway, { ...request, body: longer })

    expect(cacheStatusOf(first)).toBe('miss; reason=new_session')
    expect(cacheStatusOf(next)).toMatch(/^hit/)
  })

  test.each([
    { what: 'an empty name', request: turn({ 'session-id': '' }) },
    { what: 'a long name', request: turn({ 'session-id': 'x'.repeat(257) }) },
    { what: 'a name with control characters', request: turn({ 'session-id': 'a\tb' }) },
    { what: 'two names in one header', request: turn({ 'session-id': ['a', 'b'] }) },
    { what: 'no model', request: turn({ 'session-id': 'a', 'x-context-model': '' }) },
    { what: 'a model that is no text', request: turn({ 'session-id': 'a', 'x-context-model': 'a"b' }) },
    { what: 'a compressed body', request: turn({ 'session-id': 'a', 'content-encoding': 'gzip' }) },
    { what: 'no credential', request: turn({ 'session-id': 'a', authorization: '' }) },
    { what: 'an unknown routing strategy', request: turn({ 'session-id': 'a', 'routing-strategy': 'none-such' }) },
  ])('$what leaves the request as if it had no name', async ({ request }) => {
    const gateway = open()

    expect(await gateway.send(request)).toMatchObject({ kind: 'passthrough' })
    expect(await gateway.store.counts()).toMatchObject({ sessions: 0 })
  })

  test.each([
    { what: 'no JSON', body: Buffer.from('{"model":"m"') },
    { what: 'no object', body: Buffer.from('["model"]') },
    { what: 'no model', body: { messages: [] } },
    { what: 'no UTF-8', body: Buffer.from([0x7b, 0xff, 0x7d]) },
  ])('a body that is $what leaves the request as if it had no name', async ({ body }) => {
    const gateway = open()

    expect(await gateway.send(turn({ 'session-id': 'a', 'x-context-model': '' }, { body }))).toMatchObject({
      kind: 'passthrough',
    })
  })

  test('while the session store is away, it runs without its KV, at its pod', async () => {
    const gateway = open()
    const { destinations } = await serve(gateway, turn({ 'session-id': 'a' }))
    gateway.store.breakDown(['beginNamed'])
    const away = forwarded(await gateway.send(turn({ 'session-id': 'a' })))

    expect(cacheStatusOf(away)).toBe('miss; reason=store_unavailable')
    expect(away.destinations).toEqual(destinations)
    expect(sessionIdOf(away)).toBe('')
  })

  test.each<{ readonly agent: string; readonly main: RequestHeaders; readonly part: RequestHeaders }>([
    {
      agent: 'with a further header',
      main: { 'x-claude-code-session-id': 'a' },
      part: { 'x-claude-code-session-id': 'a', 'x-claude-code-agent-id': '1' },
    },
    {
      agent: 'that names its parent',
      main: { 'x-session-id': 'a' },
      part: { 'x-session-id': 'b', 'x-parent-session-id': 'a' },
    },
    {
      agent: 'with a thread of its own',
      main: { 'thread-id': 'a', 'session-id': 'a' },
      part: { 'thread-id': 'b', 'session-id': 'a' },
    },
  ])('a sub-agent $agent begins at the pod of its conversation', async ({ main, part }) => {
    const pods = Array.from({ length: 8 }, (_, index) => `127.0.0.1:${19_101 + index}`)
    const gateway = open({ pods })
    const parent = await serve(gateway, turn(main))
    const agents = await Promise.all([1, 2, 3].map(() => serve(gateway, turn(part))))

    expect(agents.map(({ destinations: [pod] }) => pod)).toEqual([1, 2, 3].map(() => parent.destinations[0]))
    expect(agents.map(sessionIdOf)).not.toContain(sessionIdOf(parent))
  })

  test('a first turn that fails leaves nothing behind', async () => {
    const gateway = open()
    await gateway.serve(forwarded(await gateway.send(turn({ 'session-id': 'a' }))), { status: 500 })
    await gateway.sweep()

    expect(await gateway.leftovers()).toMatchObject({ sessions: 0, kv: [] })
  })

  test('random names of one tenant end its oldest sessions, not those of others', async () => {
    const gateway = open({ maxNamedPerTenant: 3 })
    const other = await serve(gateway, turn({ 'session-id': 'kept' }, { as: 'key-b' }))
    for (let index = 0; index < 10; index++) await serve(gateway, turn({ 'session-id': `name-${index}` }))

    expect(await gateway.store.counts()).toMatchObject({ sessions: 4 })
    expect(sessionIdOf(await serve(gateway, turn({ 'session-id': 'kept' }, { as: 'key-b' })))).toBe(sessionIdOf(other))
  })

  test.each([
    { asks: 'nothing', ttl: '', seconds: 3600 },
    { asks: '24h', ttl: '24h', seconds: 86_400 },
    { asks: '1h', ttl: '1h', seconds: 3600 },
    { asks: 'in_memory', ttl: 'in_memory', seconds: 3600 },
  ])('a client that asks for $asks gets a TTL of $seconds s', async ({ ttl, seconds }) => {
    const gateway = open()
    const id = sessionIdOf(await serve(gateway, turn({ 'session-id': 'a', 'x-context-ttl': ttl })))

    expect(await gateway.view(id)).toMatchObject({ ttl: seconds })
  })

  test('nothing of a name is in the log, in tickets or in the store', async () => {
    const gateway = open()
    const forward = await serve(gateway, turn({ 'session-id': 'my-secret-name' }))
    const events = [gateway.events.of('lookedUp'), gateway.events.of('turnEnded'), gateway.events.of('sessionCreated')]
    const { session } = ticketOf(forward)
    const stored = session && (await gateway.store.get(session))

    expect(events).toMatchObject([
      [['created', 'session-id']],
      [['completed', {}, { namedBy: 'session-id' }]],
      [[session?.key]],
    ])
    expect(stored).toMatchObject({ turns: 1 })
    expect(JSON.stringify([forward, events, stored])).not.toContain('my-secret-name')
  })
})
