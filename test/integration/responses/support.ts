import type OpenAI from 'openai'
import { model } from '../support/client.ts'

export type Answer = OpenAI.Responses.Response
export type Input = OpenAI.Responses.ResponseInput

/** What continues: the last response, or a conversation. */
export type Continues = { readonly previous_response_id: string } | { readonly conversation: string }

export const tools: OpenAI.Responses.Tool[] = [
  {
    type: 'function',
    name: 'weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    strict: true,
  },
]

/** How many make up the first question, and each other one. */
export interface Sentences {
  readonly first: number
  readonly later: number
}

/** A turn's new items: of every third one a call of a tool with its output, which a client may write itself. */
export const newItems = (turn: number, { first, later }: Sentences = { first: 6, later: 6 }): Input => {
  const question = {
    role: 'user' as const,
    content: `Question ${turn}: ${'tell me more about it, please. '.repeat(turn === 1 ? first : later)}`,
  }
  if (turn % 3 !== 2) return [question]
  const call_id = `call_${turn}`
  return [
    question,
    { type: 'function_call', call_id, name: 'weather', arguments: '{"city":"Oslo"}' },
    { type: 'function_call_output', call_id, output: `{"degrees":${turn}}` },
  ]
}

const common = { model, tools, max_output_tokens: 8, temperature: 0 }

/** One turn by the SDK, streamed or not. */
export const ask = async (
  client: OpenAI,
  turn: {
    readonly input: Input | string
    readonly continues?: Continues | undefined
    readonly stream: boolean
    /** Default: that of the embedded engine. */
    readonly model?: string | undefined
  },
): Promise<{ readonly answer: Answer; readonly cache: string | null; readonly session: string | null }> => {
  const { model = common.model, input, continues } = turn
  const body = { ...common, model, input, ...continues }
  const { data, response } = turn.stream
    ? await client.responses.create({ ...body, stream: true }).withResponse()
    : await client.responses.create({ ...body, stream: false }).withResponse()
  const header = (name: string) => response.headers.get(name)
  const told = { cache: header('x-context-cache'), session: header('x-session-id') }
  if ('output' in data) return { answer: data, ...told }
  let answer: Answer | undefined
  for await (const event of data) {
    if (event.type === 'response.completed' || event.type === 'response.incomplete') answer = event.response
  }
  if (answer === undefined) throw new Error('the stream had no end')
  return { answer, ...told }
}
