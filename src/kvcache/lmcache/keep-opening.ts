import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import type { KvOpening, KvTurn } from '../kv-connector.ts'
import { readTokenIds } from '../token-ids.ts'
import { openingName } from '../vault/opening-name.ts'
import { tokensToBytes } from '../vault/token-bytes.ts'
import type { ContentKey } from '../vault/token-vault.ts'
import type { Parts } from './parts.ts'

const maxTokens = 10_000_000
const tokenizedSchema = z.object({
  tokens: z.custom<readonly unknown[]>((value) => Array.isArray(value) && value.length <= maxTokens),
})

/** What of a request decides its token ids, as vLLM's `/tokenize` takes it. */
const tokenizeFields = [
  'model',
  'prompt',
  'messages',
  'tools',
  'chat_template',
  'chat_template_kwargs',
  'add_generation_prompt',
  'continue_final_message',
  'add_special_tokens',
] as const

/**
 * Has the pod turn the session's first prompt into token ids, and keeps them for the end of the turn, in whichever process that comes. In the
 * background: the engine's events mostly tell more. Prompts that `/tokenize` does not take (lists, images) stay unknown.
 */
export const keepOpening = (
  parts: Parts,
  turn: Pick<KvTurn, 'pod' | 'turnId'> & { readonly opening: KvOpening; readonly contentKey: ContentKey },
): void => {
  const keep = async (): Promise<void> => {
    const tokens = await tokenize(parts, turn.pod, turn.opening)
    if (tokens === undefined) return
    await parts.vault.put(
      { name: openingName(turn.turnId), contentKey: turn.contentKey, content: tokensToBytes(tokens) },
      parts.limits.leaseMs,
    )
  }
  keep().catch((error: unknown) => parts.log.debug('a prompt was not tokenized ahead', { err: error }))
}

const tokenize = async (parts: Parts, pod: string, opening: KvOpening): Promise<Uint32Array | undefined> => {
  const json: unknown = JSON.parse(Buffer.from(opening.body).toString('utf8'))
  if (typeof json !== 'object' || json === null) return undefined
  const request = new Map(Object.entries(json))
  const prompt: unknown = request.get('prompt')
  if (opening.form === 'completions' && typeof prompt !== 'string') {
    const tokens = readTokenIds(prompt)
    return tokens?.length === 0 ? undefined : tokens
  }
  if (opening.form === 'responses') {
    const messages = messagesOf(request)
    if (messages === undefined) return undefined
    request.set('messages', messages)
  }
  const body = Object.fromEntries(
    tokenizeFields.filter((name) => request.has(name)).map((name) => [name, request.get(name)]),
  )
  const reply = await parts.http.call({
    method: 'POST',
    pod,
    path: '/tokenize',
    body,
    signal: AbortSignal.timeout(parts.limits.callTimeoutMs),
  })
  if (reply.kind !== 'answered' || reply.status !== 200) return undefined
  return readTokenIds(tokenizedSchema.safeParse(readJson(reply.text)).data?.tokens)
}

/** A plain-text `input` of the Responses API as the chat that engines make of it. */
const messagesOf = (request: ReadonlyMap<string, unknown>): readonly object[] | undefined => {
  const input = request.get('input')
  const instructions = request.get('instructions')
  if (typeof input !== 'string') return undefined
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : []
  return [...system, { role: 'user', content: input }]
}
