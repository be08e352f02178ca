import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import {
  asJson,
  askRaw,
  credential,
  expectRefusal,
  someBody,
  someJson,
  watching,
  wellFramed,
} from '../requests/support.ts'
import { call, model } from '../support/client.ts'
import type { PodReply, RecordedRequest } from '../support/pod-script.ts'
import { createScriptedPod } from '../support/scripted-pod.ts'
import { unknownId } from '../support/sessions.ts'
import { wiring } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

/** An engine with slots that the gateway may ask about. */
const idleSlots = (request: RecordedRequest, reply: PodReply): boolean => {
  if (request.path !== '/slots') return false
  reply.json(200, [{ id: 0, is_processing: false, n_prompt_tokens: 0 }])
  return true
}

const pod = createScriptedPod(idleSlots)
const pods = [pod]
const stack = useStack({
  pods: async () => {
    await pod.start()
    pod.otherwise((_request, reply) => reply.json(200, { any: true }))
    return pods
  },
})

const constants = '"id_slot":-1,"cache_prompt":false'
const spliced = (source: string): string => `${source.slice(0, source.lastIndexOf('}'))},${constants}}`

/** Runs `act`, and returns the bodies that clients' requests brought to the pod meanwhile. */
const bodiesDuring = async <T>(act: () => Promise<T>): Promise<{ result: T; bodies: readonly string[] }> => {
  const { result, arrivals } = await watching({ pods }, act)
  // The gateway asks with GET alone.
  const posted = arrivals.filter(({ request }) => request.method === 'POST')
  return { result, bodies: posted.map(({ request }) => request.body) }
}

/** Sends a request, and returns the bodies that reached the pod. */
const bodiesAtPod = async (path: string, headers: readonly string[], body = someJson): Promise<readonly string[]> => {
  const request = wellFramed(`POST ${path}`, { headers: [credential, asJson, ...headers], body })
  const { result, bodies } = await bodiesDuring(() => askRaw(stack, request))
  expect(result.status).toBe(200)
  return bodies
}

describe('a request that is no turn of a session', () => {
  test.each([
    { name: 'completions', path: '/v1/completions', headers: [] },
    { name: 'chat completions', path: '/v1/chat/completions', headers: [] },
    { name: 'responses', path: '/v1/responses', headers: [] },
    { name: 'messages', path: '/v1/messages?beta=true', headers: [] },
    { name: 'a name that is none', path: '/v1/completions', headers: [`x-session-id: ${'x'.repeat(257)}`] },
    { name: 'the response cache, which is off', path: '/v1/completions', headers: ['x-response-cache: on'] },
    { name: 'another media type', path: '/v1/completions', headers: ['content-type: text/plain'] },
  ])('is given the constants as its last members: $name', async ({ path, headers }) => {
    expect(await bodiesAtPod(path, headers)).toEqual([spliced(someJson)])
  })

  test('is given them behind its own', async () => {
    const own = JSON.stringify({ ...someBody, cache_prompt: true, id_slot: 0, cache_salt: 'mine' })

    const [body = ''] = await bodiesAtPod('/v1/completions', [], own)

    expect(JSON.parse(body)).toMatchObject({ id_slot: -1, cache_prompt: false, cache_salt: 'mine' })
  })

  test('is given them in a body of unknown length', async () => {
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(someJson))
        controller.close()
      },
    })

    const { bodies } = await bodiesDuring(() =>
      fetch(`${stack.url}/v1/completions`, { method: 'POST', body, duplex: 'half' }),
    )

    expect(bodies).toEqual([spliced(someJson)])
  })

  const form = `--x\r\ncontent-disposition: form-data; name="prompt"\r\n\r\na\r\n--x--\r\n`
  const gzipped = gzipSync(someJson).toString('latin1')
  const unsupported = { status: 415, code: 'unsupported_media_type' }
  const invalid = { status: 400, code: 'invalid_json' }
  const formType = 'content-type: Multipart/form-data; boundary=x'
  test.each([
    { name: 'compressed', headers: ['content-encoding: gzip'], body: gzipped, ...unsupported },
    { name: 'said to be compressed', headers: ['content-encoding: br'], body: someJson, ...unsupported },
    {
      name: 'compressed, by the second coding',
      headers: ['content-encoding: identity', 'content-encoding: br'],
      body: someJson,
      ...unsupported,
    },
    { name: 'a form', headers: [formType], body: form, ...unsupported },
    { name: 'a form that looks like an object', headers: [formType], body: `{\r\n${form}}`, ...unsupported },
    { name: 'no JSON', headers: [asJson], body: 'a prompt', ...invalid },
    { name: 'no object', headers: [asJson], body: `[${someJson}]`, ...invalid },
    { name: 'an object behind a byte order mark', headers: [asJson], body: `\xef\xbb\xbf${someJson}`, ...invalid },
    { name: 'empty', headers: [asJson], body: ' ', ...invalid },
  ])('is refused, where its body cannot be spliced: $name', async ({ headers, body, status, code }) => {
    const request = wellFramed('POST /v1/chat/completions', { headers: [credential, ...headers], body })

    const { result, bodies } = await bodiesDuring(() => askRaw(stack, request))

    // Lua does not say which header it was.
    const names = wiring === 'picker' ? /"param":"(content-\w+)"/.exec(result.text) : null
    const param = names?.[1] ?? null
    expectRefusal(result, { status, code, param })
    expect(bodies).toEqual([])
  })

  test('is refused as a form also with an id, whose turn would be spliced', async () => {
    const headers = [credential, `x-session-id: ${unknownId}`, 'content-type: multipart/form-data; boundary=x']
    const request = wellFramed('POST /v1/completions', { headers, body: `{\r\n${form}}` })

    const { result, bodies } = await bodiesDuring(() => askRaw(stack, request))

    expectRefusal(result, { status: 415, code: 'unsupported_media_type', param: 'content-type' })
    expect(bodies).toEqual([])
  })

  test('is refused, where its body is larger than what can be spliced', async () => {
    const body = { model, prompt: 'x'.repeat(17 * 1024 * 1024) }

    const { result, bodies } = await bodiesDuring(() => call(`${stack.url}/v1/completions`, { body }))

    expect([result.status, result.body]).toMatchObject([413, { error: { code: 'request_too_large' } }])
    expect(bodies).toEqual([])
  })

  test.each(['/v1/audio/transcriptions', '/v1/audio/translations'])(
    'is refused on %s, where engines with slots ignore the constants',
    async (path) => {
      const { result, bodies } = await bodiesDuring(() => call(`${stack.url}${path}`, { body: someBody }))

      expect([result.status, result.body]).toMatchObject([404, { error: { code: 'unknown_path' } }])
      expect(bodies).toEqual([])
    },
  )

  test.each(['/v1/embeddings', '/v1/rerank', '/v1/score', '/v1/messages/count_tokens?beta=true'])(
    'is unchanged on %s, where engines use no KV of others',
    async (path) => {
      expect(await bodiesAtPod(path, [], ' [] ')).toEqual([' [] '])
    },
  )
})

describe('while no gateway is there', () => {
  beforeAll(() => stack.gateway().child.kill())

  test.each([
    { name: 'no header of a session', headers: [] },
    { name: 'an id', headers: [`x-session-id: ${unknownId}`] },
    { name: 'an id of another system', headers: ['x-session-id: other'] },
    { name: 'a time to live', headers: ['x-session-ttl: 60'] },
    { name: 'the response cache', headers: ['x-response-cache: on'] },
  ])('each inference request is given the constants: $name', async ({ headers }) => {
    expect(await bodiesAtPod('/v1/completions', headers)).toEqual([spliced(someJson)])
  })
})
