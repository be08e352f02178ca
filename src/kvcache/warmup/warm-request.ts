import * as z from 'zod'
import type { EngineHttp } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'
import type { KvOpening } from '../kv-connector.ts'

const pathOf = {
  completions: '/v1/completions',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
} as const

/** Members that make an answer longer, or make it come in pieces. */
const dropped = [
  'stream',
  'stream_options',
  'n',
  'best_of',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'min_tokens',
]

const shortest = {
  completions: { max_tokens: 1 },
  chat: { max_tokens: 1 },
  responses: { max_output_tokens: 1, store: false },
} as const

const answerSchema = z.object({
  usage: z.object({ prompt_tokens: z.int().min(0).optional(), input_tokens: z.int().min(0).optional() }),
})

/**
 * Has a pod compute a prefix: the request itself, for one token. Resolves to the tokens of its prompt.
 * @throws when the pod does not answer, or refuses
 */
export const warmUp = async (
  http: EngineHttp,
  request: { readonly pod: string; readonly opening: KvOpening; readonly salt: string },
  signal: AbortSignal,
): Promise<number> => {
  const { pod, opening, salt } = request
  const json: unknown = JSON.parse(Buffer.from(opening.body).toString('utf8'))
  if (typeof json !== 'object' || json === null) throw new Error('the kept request is no JSON object')
  const members = Object.entries(json).filter(([name]) => !dropped.includes(name))
  const body = { ...Object.fromEntries(members), ...shortest[opening.form], stream: false, cache_salt: salt }
  const reply = await http.call({ method: 'POST', pod, path: pathOf[opening.form], body, signal })
  if (reply.kind !== 'answered') throw new Error('the pod did not answer the warm-up', { cause: reply.cause })
  if (reply.status !== 200) throw new Error(`the pod answered the warm-up with ${reply.status}`)
  // Neither the answer nor a parser's account of it may get into a log.
  const answer = answerSchema.safeParse(readJson(reply.text))
  if (!answer.success) throw new Error('the pod answered the warm-up with something else')
  const { usage } = answer.data
  return usage.prompt_tokens ?? usage.input_tokens ?? 0
}
