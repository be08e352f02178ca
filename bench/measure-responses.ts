import { EventSourceParserStream } from 'eventsource-parser/stream'
import { z } from 'zod'
import type { BenchStack } from './bench-stack.ts'
import { call, waitForContext } from './context-api.ts'
import { makePrompt } from './prompts.ts'

/** A turn of `/v1/responses`, as a client sees it. */
interface ResponsesTurn {
  /** From the request to the first piece of text. */
  readonly ttftMs: number
  /** Of the request's body. */
  readonly sentBytes: number
  readonly cachedTokens: number
}

/** The same turn of two conversations. */
export interface ComparedTurn {
  readonly turn: number
  /** By a session's id, with the whole history in `input`. */
  readonly bySession: ResponsesTurn
  /** By `previous_response_id`, with the new item alone. */
  readonly byPrevious: ResponsesTurn
}

const turns = 10
const firstLength = 2500
const moreLength = 120
const settings = { max_output_tokens: 4, temperature: 0, stream: true }
/** The next turn runs on the other pod. Nothing else is said by a header. */
const alternate = { 'routing-strategy': 'round-robin' }

const event = z.looseObject({
  type: z.string(),
  response: z
    .looseObject({
      id: z.string(),
      output: z.array(z.looseObject({})),
      usage: z.object({ input_tokens_details: z.object({ cached_tokens: z.number() }) }).nullish(),
    })
    .optional(),
})

const send = async (stack: BenchStack, body: object, headers: Record<string, string>) => {
  const text = JSON.stringify({ model: stack.engine.model, ...settings, ...body })
  const startedMs = performance.now()
  const response = await call(`${stack.url}/v1/responses`, { method: 'POST', headers, body: text })
  if (!response.ok || response.body === null) throw new Error(`${response.status}: ${await response.text()}`)
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  let ttftMs: number | undefined
  let last: z.infer<typeof event>['response']
  for await (const { data } of events) {
    const { type, response: answer } = event.parse(JSON.parse(data))
    if (type === 'response.output_text.delta') ttftMs ??= performance.now() - startedMs
    if (type === 'response.completed' || type === 'response.incomplete') last = answer
  }
  const session = response.headers.get('x-session-id')
  if (ttftMs === undefined || last === undefined || session === null) throw new Error('a turn of a response failed')
  const cachedTokens = last.usage?.input_tokens_details.cached_tokens ?? 0
  return {
    turn: { ttftMs, sentBytes: Buffer.byteLength(text), cachedTokens },
    id: last.id,
    output: last.output,
    session,
  }
}

type Answered = Awaited<ReturnType<typeof send>>

const untilStored = (stack: BenchStack, { session }: Answered, turn: number) =>
  waitForContext(`${stack.url}/v1/context/${session}`, ({ turns: seen, kv }) => {
    const stored = kv.stored?.turn ?? 0
    return seen >= turn && stored >= (stack.engine.storesEveryTurn ? turn : 1)
  })

/** Measures ten turns of two conversations of one shape; each turn runs on the other pod than the one before. */
export const measureResponses = async (stack: BenchStack, seed: string): Promise<readonly ComparedTurn[]> => {
  const say = (kind: string, turn: number) => {
    const ids = makePrompt({ firstId: 97, size: 26 }, `${seed} ${kind} ${turn}`, turn === 1 ? firstLength : moreLength)
    return { role: 'user', content: String.fromCharCode(...ids) }
  }
  const compared: ComparedTurn[] = []
  const history: object[] = []
  let bySession: Answered | undefined
  let byPrevious: Answered | undefined
  for (let turn = 1; turn <= turns; turn += 1) {
    history.push(say('session', turn))
    const chosen: Record<string, string> =
      bySession === undefined ? { 'x-session-ttl': '3600' } : { 'x-session-id': bySession.session }
    bySession = await send(stack, { input: history, store: false }, { ...alternate, ...chosen })
    history.push(...bySession.output)
    await untilStored(stack, bySession, turn)
    const previous = byPrevious === undefined ? {} : { previous_response_id: byPrevious.id }
    byPrevious = await send(stack, { input: [say('previous', turn)], ...previous }, alternate)
    await untilStored(stack, byPrevious, turn)
    compared.push({ turn, bySession: bySession.turn, byPrevious: byPrevious.turn })
  }
  return compared
}
