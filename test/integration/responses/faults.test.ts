import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, post } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply } from '../support/pod-script.ts'
import { exchangeRaw, headerOf, rawRequest, readMessages } from '../support/raw-http.ts'
import { event } from '../support/scripted-responses.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const answerOf = (id: string, status: string, text = 'one two') => ({
  id,
  object: 'response',
  status,
  model: 'scripted',
  previous_response_id: null,
  store: false,
  output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] }],
  usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
})
const created = (id: string): string =>
  event({ type: 'response.created', response: { ...answerOf(id, 'in_progress'), output: [] } }, 'response.created')
const delta = event({ type: 'response.output_text.delta', delta: 'one' }, 'response.output_text.delta')
const last = (id: string, status: string): string =>
  event({ type: `response.${status}`, response: answerOf(id, status) }, `response.${status}`)
const kept = (text: string): string => text.replaceAll('"store":false', '"store":true')

describe.each(['lua', 'picker'] as const)('in the wiring %s', (wiring) => {
  const { stack, pod } = useScriptedStack({ wiring, store: 'redis', env: { CTX_RESPONSES_STORE: 'true' } })

  const send = (part: object = {}, headers: Record<string, string> = {}) =>
    call(`${stack.url}/v1/responses`, { body: { model: 'scripted', input: 'hello', ...part }, headers })
  const continuing = (id: string) => send({ previous_response_id: id })
  const expectUnknown = (id: string) =>
    eventually(async () => {
      expect((await continuing(id)).body).toMatchObject({ error: { code: 'previous_response_not_found' } })
      expect(await metric(stack, 'ext_proc_streams_active')).toBe(0)
    })

  /** A stream of which the pod has sent the first two events, and that waits for the others. */
  const begun = async (id: string) => {
    let reply: PodReply | undefined
    pod.next((_request, its) => {
      its.write(created(id))
      its.write(delta)
      reply = its
    })
    const client = new AbortController()
    const body = { model: 'scripted', input: 'hello', stream: true }
    const response = await post(`${stack.url}/v1/responses`, body, { signal: client.signal })
    const reader = response.body?.getReader()
    const decoder = new TextDecoder()
    const read = async (): Promise<string> => decoder.decode((await reader?.read())?.value)
    let got = ''
    while (got.length < kept(created(id) + delta).length) got += await read()
    const rest = async (): Promise<string> => {
      let text = ''
      for (let piece = await read(); piece !== ''; piece = await read()) text += piece
      return text
    }
    return { got, reply, rest, leave: () => client.abort() }
  }

  test('each event arrives before the next is sent, with what was asked for', async () => {
    const stream = await begun('resp_stream')
    expect(stream.got).toBe(kept(created('resp_stream') + delta))
    stream.reply?.write(last('resp_stream', 'completed'))
    stream.reply?.end()
    expect(await stream.rest()).toBe(kept(last('resp_stream', 'completed')))
    expect((await continuing('resp_stream')).status).toBe(200)
  })

  test('the engine sees the whole history and nothing of the gateway', async () => {
    pod.next((_request, reply) => reply.json(200, answerOf('resp_whole', 'completed')))
    await send({ instructions: 'Be brief.' })
    await send({ previous_response_id: 'resp_whole', input: [{ role: 'user', content: 'more' }], metadata: { a: 'b' } })
    const [first, next] = pod.requests().slice(-2)
    const { cache_salt: _, ...body } = JSON.parse(next?.body ?? '')
    expect(JSON.parse(first?.body ?? '')).toMatchObject({ store: false, instructions: 'Be brief.' })
    expect(body).toEqual({
      model: 'scripted',
      previous_response_id: null,
      store: false,
      input: [
        { type: 'message', role: 'user', content: 'hello' },
        ...answerOf('', '').output,
        { role: 'user', content: 'more' },
      ],
      metadata: { a: 'b' },
    })
  })

  test('an answer that is no stream is framed by its own length', async () => {
    pod.next((_request, reply) => reply.json(200, answerOf('resp_framed', 'completed', 'x'.repeat(100_000))))
    const body = JSON.stringify({ model: 'scripted', input: 'hello' })
    const headers = [
      'host: a',
      'authorization: Bearer k',
      'content-type: application/json',
      'connection: close',
      `content-length: ${body.length}`,
    ]
    const bytes = await exchangeRaw(stack.port, rawRequest({ startLine: 'POST /v1/responses HTTP/1.1', headers, body }))
    const [message, ...others] = readMessages(bytes)
    expect(others).toEqual([])
    expect(
      headerOf(message ?? { headers: [] }, 'content-length').length +
        headerOf(message ?? { headers: [] }, 'transfer-encoding').length,
    ).toBe(1)
    expect(JSON.parse(String(message?.body))).toEqual({
      ...answerOf('resp_framed', 'completed', 'x'.repeat(100_000)),
      store: true,
    })
  })

  test('what was kept, and why not, is counted', async () => {
    const counts = () =>
      Promise.all(
        ['stored', 'exists', 'no_answer', 'item_bytes'].map((outcome) =>
          metric(stack, 'kept_responses_total', { outcome }),
        ),
      )
    const before = await counts()
    pod.next((_request, reply) => reply.json(200, answerOf('resp_counted', 'completed')))
    await send()
    pod.next((_request, reply) => reply.json(200, answerOf('resp_counted', 'completed')))
    expect((await send()).body).toMatchObject({ store: false })
    pod.next((_request, reply) => reply.json(500, { error: {} }))
    await send()
    pod.next((_request, reply) => reply.json(200, answerOf('resp_large', 'completed', 'x'.repeat(1_100_000))))
    expect((await send()).body).toMatchObject({ store: false })
    await send({ store: false })
    await eventually(async () => expect(await counts()).toEqual(before.map((count) => count + 1)))
  })

  test.each<[string, (stream: Awaited<ReturnType<typeof begun>>, id: string) => void]>([
    ['the engine cuts it', ({ reply }) => reply?.reset()],
    ['the engine ends it without its last event', ({ reply }) => reply?.end()],
    ['its client disconnects', ({ leave }) => leave()],
    [
      'the response fails',
      ({ reply }, id) => {
        reply?.write(last(id, 'failed'))
        reply?.end()
      },
    ],
  ])('a stream is not kept when %s', async (name, end) => {
    const id = `resp_${name.replaceAll(' ', '_')}`
    const stream = await begun(id)
    end(stream, id)
    await stream.rest().catch(() => undefined)
    await expectUnknown(id)
  })

  test('an error of the engine passes unchanged', async () => {
    pod.next((_request, reply) => reply.json(400, { error: { message: 'too long' } }))
    const answer = await send()
    expect({ status: answer.status, text: answer.text }).toEqual({
      status: 400,
      text: '{"error":{"message":"too long"}}',
    })
  })

  test('background is refused', async () => {
    expect((await send({ background: true })).body).toMatchObject({
      error: { code: 'unsupported_parameter', param: 'background', type: 'invalid_request_error' },
    })
  })

  test('a gateway that is killed in the middle of a stream leaves no half answer', async () => {
    const stream = await begun('resp_killed')
    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(1))
    await stack.gateway().child.kill()
    stream.reply?.write(last('resp_killed', 'completed'))
    stream.reply?.end()
    const rest = await stream.rest().catch(() => 'cut')
    // Where the gateway is no endpoint picker, Envoy goes on without it.
    expect(rest).toBe(wiring === 'lua' ? last('resp_killed', 'completed') : 'cut')
    await stack.restartGateway()
    await eventually(async () => expect((await send()).status).toBe(200))
    await expectUnknown('resp_killed')
  })
})
