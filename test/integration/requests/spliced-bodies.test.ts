import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { z } from 'zod'
import type { PodReply, RecordedRequest } from '../support/pod-script.ts'
import { exchangeRaw, rawRequest, readMessages, readWhole } from '../support/raw-http.ts'
import { createScriptedPod } from '../support/scripted-pod.ts'
import { createdId } from '../support/sessions.ts'
import { wiring } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { damaged, objectWith } from './json-source.ts'
import { asJson, credential, type Reading, rawReading } from './support.ts'

const slotIds = Array.from({ length: 64 }, (_, id) => id)

/** An engine whose slots stay empty: enough for the gateway to choose one for every turn, if ends of turns are late. */
const emptySlots = (request: RecordedRequest, reply: PodReply): boolean => {
  const slots = slotIds.map((id) => ({ id, is_processing: false, n_prompt_tokens: 0 }))
  const responses: ReadonlyMap<string, unknown> = new Map<string, unknown>([
    ['/slots', slots],
    ['/v1/models', { object: 'list', data: [{ id: 'tiny-random' }] }],
  ])
  const isAboutSlots =
    request.path.startsWith('/slots') || ['/props', '/lora-adapters', '/v1/models'].includes(request.path)
  if (isAboutSlots) reply.json(responses.has(request.path) ? 200 : 404, responses.get(request.path) ?? {})
  return isAboutSlots
}

const pod = createScriptedPod(emptySlots)
let sessionId: string
const stack = useStack(
  {
    pods: async () => {
      await pod.start()
      return [pod]
    },
    // No KV is worth storing: a turn takes a slot and nothing else.
    env: { CTX_KV_MIN_TOKENS: '1000000' },
  },
  async (started) => {
    sessionId = await createdId(started)
  },
)

const framings = ['content-length', 'chunked'] as const
type Framing = (typeof framings)[number]

/** Takes a turn with this body; returns its response and the request that the engine received, if any. */
const takeTurn = async (
  source: string,
  framing: Framing,
): Promise<{ readonly response: Reading; readonly arrived: RecordedRequest | undefined }> => {
  const body = Buffer.from(source).toString('latin1')
  const before = pod.requests().length
  const request = rawRequest({
    startLine: 'POST /v1/completions HTTP/1.1',
    headers: [
      'host: gateway',
      'connection: close',
      credential,
      asJson,
      `x-session-id: ${sessionId}`,
      framing === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${body.length}`,
    ],
    body: framing === 'chunked' ? inTwoChunks(body) : body,
  })
  const [message] = readMessages(await exchangeRaw(stack.port, request))
  if (message === undefined) throw new Error('there is no answer')
  return { response: rawReading(message), arrived: pod.requests()[before] }
}

const inTwoChunks = (body: string): string => {
  const half = Math.ceil(body.length / 2)
  const chunks = [body.slice(0, half), body.slice(half)].filter((chunk) => chunk !== '')
  return [...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')
}

/** The object that a text stands for; undefined: it stands for none. */
const objectOf = (source: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(source)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

/** The members of a turn whose slot holds no KV. */
const spliced = {
  id_slot: expect.any(Number),
  n_keep: expect.any(Number),
  cache_prompt: false,
  cache_salt: expect.stringMatching(/^\w{16,}$/),
}

const withoutSpliced = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !(name in spliced)))

const members = String.raw`"id_slot":\d+(?:,"\w+":(?:"\w*"|\d+|false))*`

/** The members that were appended to a body; the rest of it is unchanged. */
const splicedInto = (source: string, arrived: string): Record<string, unknown> => {
  const kept = source.slice(0, source.lastIndexOf('}'))
  expect(arrived.slice(0, kept.length)).toBe(kept)
  const [, last] = new RegExp(`^,(${members})\\}$`).exec(arrived.slice(kept.length)) ?? []
  if (last === undefined) throw new Error(`nothing was added to ${arrived}`)
  return JSON.parse(`{${last}}`)
}

describe('the body of a turn', () => {
  test('reaches the engine unchanged, with the gateway’s fields as its last members', async () => {
    await fc.assert(
      fc.asyncProperty(objectWith('"model":"tiny-random"'), fc.constantFrom(...framings), async (source, framing) => {
        const { response, arrived } = await takeTurn(source, framing)

        expect(response.status).toBe(200)
        const added = splicedInto(source, arrived?.body ?? '')
        expect(added).toEqual(spliced)
        expect(slotIds).toContain(added['id_slot'])
        expect(objectOf(arrived?.body ?? '')).toEqual({ ...objectOf(source), ...added })
        // As endpoint picker the gateway forwards a body before it knows the length.
        const length = wiring === 'picker' ? undefined : String(arrived?.bytes.length)
        expect(arrived?.headers['content-length']).toBe(length)
        expect('transfer-encoding' in (arrived?.headers ?? {})).toBe(wiring === 'picker')
      }),
      { numRuns: 200 },
    )
  })

  test.each(['{}', ' {\n} ', '{"model":"tiny-random"}', '{"a":{}}', '{"a":"}"}', '{"a":"{"}\n'])(
    'is given them even when it is %j',
    async (source) => {
      const { arrived } = await takeTurn(source, 'content-length')

      expect(objectOf(arrived?.body ?? '')).toEqual({ ...objectOf(source), ...spliced })
    },
  )

  test('is given them however much white space follows', async () => {
    const { arrived } = await takeTurn(`{"prompt":"x"}${' \r\n\t'.repeat(1000)}`, 'content-length')

    expect(objectOf(arrived?.body ?? '')).toEqual({ prompt: 'x', ...spliced })
  })

  test('cannot choose a slot or a salt by itself: what the gateway says counts', async () => {
    const { arrived } = await takeTurn('{"id_slot":99,"id_sl\\u006ft":98,"prompt":"x","n_keep":1}', 'content-length')

    expect(slotIds).toContain(objectOf(arrived?.body ?? '')?.['id_slot'])
  })

  test('that is no JSON stays none, and one that is stays what it is', async () => {
    await fc.assert(
      fc.asyncProperty(
        damaged(objectWith('"model":"tiny-random"')),
        fc.constantFrom(...framings),
        async (source, framing) => {
          const meant = objectOf(source)

          const { response, arrived } = await takeTurn(source, framing)

          const refusal = z.object({ error: z.object({ code: z.string() }) }).safeParse(objectOf(response.text)).data
          const got = arrived && objectOf(arrived.body)
          expect({ reason: refusal?.error.code, got: got && withoutSpliced(got) }).toEqual(
            expectedOf({
              source,
              meant: meant && withoutSpliced(meant),
              isRefused: arrived === undefined,
              code: refusal?.error.code,
            }),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  test('leaves the connection to the engine with nothing that does not belong to a request', () => {
    const received = pod.wire().map((bytes) => readWhole(bytes))

    expect(received.map(({ isCut }) => isCut)).not.toContain(true)
    const turns = received
      .flatMap(({ messages }) => messages)
      .filter(({ startLine }) => startLine.startsWith('POST /v1/'))
    expect(turns.map(({ body }) => body.toString()).sort()).toEqual(
      pod
        .requests()
        .map(({ body }) => body)
        .sort(),
    )
  })
})

/** A refusal by the gateway is right for a body that is no object, or that names another model at any depth. */
const expectedOf = (turn: {
  readonly source: string
  readonly meant: Record<string, unknown> | undefined
  readonly isRefused: boolean
  readonly code: string | undefined
}): { readonly reason: string | undefined; readonly got: Record<string, unknown> | undefined } => {
  if (!turn.isRefused) return { reason: undefined, got: turn.meant }
  const isOtherModel = /"model"\s*:\s*"(?!tiny-random")/.test(turn.source)
  const allowed = turn.meant === undefined || isOtherModel ? turn.code : 'none, for it is right'
  return { reason: allowed, got: undefined }
}
