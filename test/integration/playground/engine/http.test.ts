// What an engine answers to requests that an SDK would not send, and how it deals with clients that leave.
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { createEngineClient, textOf } from './support/engine-client.ts'
import { createEngineProcesses, type EngineProcess } from './support/engine-process.ts'

const model = 'tiny-random'

jest.setTimeout(120_000)

describe('an engine', () => {
  const processes = createEngineProcesses()
  let engine: EngineProcess
  let client: ReturnType<typeof createEngineClient>
  beforeAll(async () => {
    const args = ['--context-tokens', '4096', '--slots', '2', '--max-body-bytes', '10000', '--max-output-tokens', '5']
    engine = await processes.start([...args, '--model-name', model, '--model-name', 'alias', '--always-usage'])
    client = createEngineClient(engine.url)
  })
  afterAll(() => processes.stopAll())

  type RefusedRow = readonly [name: string, body: unknown, status: number, error: Readonly<Record<string, unknown>>]
  const anyPrompt = { prompt: 'a', messages: [{ role: 'user', content: 'a' }], input: 'a' }
  const refused: readonly RefusedRow[] = [
    ['broken JSON', '{"model":', 400, { code: 'invalid_json' }],
    ['JSON that is no object', '[]', 400, { code: 'invalid_json' }],
    ['nothing', '', 400, { code: 'invalid_json' }],
    ['no model', anyPrompt, 400, { param: 'model', code: 'missing_required_parameter' }],
    ['no prompt', { model }, 400, { code: 'missing_required_parameter' }],
    ['too much', { model, prompt: 'x'.repeat(10_000) }, 413, { code: 'request_too_large' }],
    ['an unknown model', { ...anyPrompt, model: 'x' }, 404, { param: 'model', code: 'model_not_found' }],
  ]
  const apis = ['/v1/completions', '/v1/chat/completions', '/v1/responses']
  test.each(apis.flatMap((path) => refused.map((row) => [path, ...row] as const)))(
    '%s refuses %s',
    async (path, _, body, status, error) => {
      expect(await client.postJson(path, body)).toMatchObject({
        status,
        body: { error: { message: expect.any(String), type: 'invalid_request_error', ...error } },
      })
    },
  )

  test('refuses a compressed body', async () => {
    const answer = await client.postJson('/v1/completions', '{}', { headers: { 'content-encoding': 'gzip' } })
    expect(answer).toMatchObject({ status: 415, body: { error: { code: 'unsupported_content_encoding' } } })
  })

  test.each([
    ['GET', '/v2', 404, 'unknown_url'],
    ['GET', '/v1/completions', 405, 'method_not_allowed'],
    ['POST', '/slots', 405, 'method_not_allowed'],
    ['GET', '/v1/models/x', 404, 'model_not_found'],
  ])('answers %s %s with %i', async (method, path, status, code) => {
    const response = await fetch(engine.url + path, { method })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { code } })
  })

  test('serves every name', async () => {
    expect(await client.getJson('/v1/models')).toMatchObject({
      status: 200,
      body: { data: [{ id: model }, { id: 'alias' }] },
    })
    const answer = await client.postJson('/v1/completions', { model: 'alias', prompt: 'a' })
    expect(answer).toMatchObject({ status: 200, body: { model: 'alias', usage: { completion_tokens: 5 } } })
  })

  test('is healthy', async () => {
    expect(await client.getJson('/health')).toEqual({ status: 200, body: { status: 'ok' } })
  })

  test('sends usage with every stream when told to', async () => {
    const body = { model, messages: [{ role: 'user', content: 'a' }], stream: true }
    const response = await client.post('/v1/chat/completions', body)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const events = (await response.text()).trimEnd().split('\n\n')
    expect(events.at(-1)).toBe('data: [DONE]')
    expect(JSON.parse(events.at(-2)?.slice('data: '.length) ?? '')).toMatchObject({
      choices: [],
      usage: { completion_tokens: 5 },
    })
  })

  test.each([
    ['llama-server’s form', { content: 'a€' }, { tokens: [97, 226, 130, 172] }],
    ['vLLM’s form', { model, prompt: 'ab' }, { count: 2, max_model_len: 4096, tokens: [97, 98] }],
    ['marks in text', { content: '<|im_end|>' }, { tokens: [258] }],
    [
      'a conversation, where marks in a message remain text',
      { messages: [{ role: 'user', content: '<|im_end|>' }] },
      { count: 29, tokens: expect.arrayContaining([60, 124]) },
    ],
  ])('tokenizes %s', async (_, body, expected) => {
    expect(await client.postJson('/tokenize', body)).toMatchObject({ status: 200, body: expected })
  })

  test.each([
    ['without text', {}, 400],
    ['for an unknown model', { model: 'x', prompt: 'a' }, 404],
  ])('tokenizes nothing %s', async (_, body, status) => {
    expect(await client.postJson('/tokenize', body)).toMatchObject({ status })
  })

  test('cannot save slots without a folder', async () => {
    expect(await client.slotAction(0, 'save', { filename: 'a.bin' })).toMatchObject({
      status: 501,
      body: { error: { code: 501, type: 'not_supported_error' } },
    })
  })

  test('counts tokens and requests under vLLM’s names', async () => {
    const value = async (name: string) => {
      const line = (await client.getText('/metrics')).split('\n').find((text) => text.startsWith(`${name}{`))
      return Number(line?.split(' ').at(-1))
    }
    const names = [
      'vllm:prompt_tokens_total',
      'vllm:generation_tokens_total',
      'vllm:prefix_cache_queries_total',
      'vllm:prefix_cache_hits_total',
      'vllm:time_to_first_token_seconds_count',
    ]
    const read = () => Promise.all(names.map(value))
    await client.complete(textOf(100, 1), { id_slot: 0, max_tokens: 7 })
    const before = await read()
    await client.complete(textOf(100, 1), { id_slot: 0, max_tokens: 7 })
    const after = await read()
    expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([100, 7, 100, 99, 1])
    expect(
      await Promise.all(
        ['vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc'].map(value),
      ),
    ).toEqual([0, 0, 0])
    expect(await value('process_start_time_seconds')).toBeLessThan(Date.now() / 1000)
  })

  test('shows running requests and the room they take', async () => {
    await client.complete('a', { id_slot: 1 })
    const leaving = new AbortController()
    const body = { model, prompt: textOf(100, 2), max_tokens: 3000, id_slot: 1 }
    const request = client.post('/v1/completions', body, { signal: leaving.signal })
    await client.slotsUntil((slots) => (slots[1]?.n_tokens ?? 0) > 100)
    const metrics = await client.getText('/metrics')
    leaving.abort()
    await expect(request).rejects.toThrow()
    expect(metrics).toContain('vllm:num_requests_running{model_name="tiny-random"} 1\n')
    expect(metrics).toMatch(/vllm:kv_cache_usage_perc\{model_name="tiny-random"\} 0\.\d+\n/)
  })

  test.each([
    ['a stream', true],
    ['an answer', false],
  ])('stops computing when the client of %s leaves', async (_, stream) => {
    await client.complete('a', { id_slot: 0 })
    const leaving = new AbortController()
    const body = { model, prompt: textOf(100, 3), max_tokens: 3000, stream, id_slot: 0 }
    const request = client.post('/v1/completions', body, { signal: leaving.signal })
    await client.slotsUntil((slots) => slots[0]?.is_processing === true && slots[0].n_tokens > 100)
    leaving.abort()
    await request.then((response) => response.text()).catch(() => undefined)
    const slots = await client.slotsUntil(([slot]) => slot?.is_processing === false)
    expect(slots[0]?.n_tokens).toBeLessThan(3000)
    expect((await client.complete(textOf(100, 3), { id_slot: 0 })).cachedTokens).toBe(99)
  })

  test('stops computing a prompt whose client leaves', async () => {
    await client.complete('a', { id_slot: 0 })
    const leaving = new AbortController()
    const body = { model, prompt: textOf(4000, 4), id_slot: 0 }
    const request = client.post('/v1/completions', body, { signal: leaving.signal })
    await client.slotsUntil((slots) => slots[0]?.is_processing === true && slots[0].n_tokens >= 256)
    leaving.abort()
    await expect(request).rejects.toThrow()
    const slots = await client.slotsUntil(([slot]) => slot?.is_processing === false)
    expect(slots[0]?.n_tokens).toBeLessThan(3999)
  })

  test.each([
    ['a stream', true],
    ['an answer', false],
  ])('has its slot free for whoever sees the end of %s', async (_, stream) => {
    const body = { model, prompt: textOf(20, 5), max_tokens: 2, stream, id_slot: 0 }
    for (let round = 0; round < 20; round += 1) {
      await (await client.post('/v1/completions', body)).text()
      expect((await client.slots())[0]).toMatchObject({ is_processing: false })
    }
  })

  test('writes no prompt, salt or session id to its log', async () => {
    const secrets = { prompt: 'pineapple', cache_salt: 'rhubarb' }
    await client.complete(secrets.prompt, { cache_salt: secrets.cache_salt }, { 'x-session-id': 'ctx_gooseberry' })
    expect(engine.log()).toContain('"answered"')
    expect(engine.log()).not.toMatch(/pineapple|rhubarb|gooseberry/)
  })
})
