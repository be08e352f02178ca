import { membersOf } from '../json/members-of.ts'
import type { ResponseForm } from './response-key.ts'

/** A request that the cache may answer. */
export interface CacheableRequest {
  readonly model: string
  readonly form: ResponseForm
}

/**
 * Reads a request body that the cache may answer; undefined when it may not. The cache may answer a request that must
 * get the same response each time:
 *
 * - it is deterministic: `temperature` 0, or a `seed` that engines do not read as "random";
 * - it asks for one response: `n` and `best_of` are 1 or missing;
 * - it contains all that the response depends on: no picture by address, no file or media by id, no earlier response
 *   or conversation that the engine keeps, no tool that the engine runs itself (one that the client runs is only text);
 * - it waits for its response: no `background`.
 */
export const readCacheableRequest = (body: ReadonlyMap<string, unknown>): CacheableRequest | undefined => {
  const model = body.get('model')
  const form = formOf(body.get('stream'))
  if (typeof model !== 'string' || form === undefined) return undefined
  const isCacheable = isDeterministic(body) && asksForOne(body) && standsAlone(body) && runsNothing(body.get('tools'))
  return isCacheable ? { model, form } : undefined
}

/** Only `true` is a stream: how an engine reads `"true"` is unknown. */
const formOf = (stream: unknown): ResponseForm | undefined => {
  if (stream === true) return 'stream'
  return isMissing(stream) || stream === false ? 'json' : undefined
}

const isMissing = (value: unknown): boolean => value === undefined || value === null

const isDeterministic = (body: ReadonlyMap<string, unknown>): boolean =>
  body.get('temperature') === 0 || isSeed(body.get('seed'))

/** -1 asks vLLM and llama-server for a random seed, which for llama-server is the same as 2^32 - 1. */
const isSeed = (seed: unknown): boolean =>
  typeof seed === 'number' && Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32 - 1

const asksForOne = (body: ReadonlyMap<string, unknown>): boolean =>
  ['n', 'best_of'].every((name) => isMissing(body.get(name)) || body.get(name) === 1)

const standsAlone = (body: ReadonlyMap<string, unknown>): boolean =>
  ['previous_response_id', 'conversation', 'web_search_options'].every((name) => isMissing(body.get(name))) &&
  (isMissing(body.get('background')) || body.get('background') === false) &&
  !isStoredTemplate(body.get('prompt')) &&
  ['messages', 'input'].every((name) => holdsItsContent(body.get(name)))

/** `prompt` is text or token ids, or (in the responses API) the name of a template that can be edited. */
const isStoredTemplate = (prompt: unknown): boolean =>
  typeof prompt === 'object' && prompt !== null && !Array.isArray(prompt)

/** Whether messages contain all their content. A picture at an address, or a file of the engine, can change unseen. */
const holdsItsContent = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.every(holdsItsContent)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, member]: [string, unknown]) =>
    typeof member === 'string' ? isOwn(name, member) : holdsItsContent(member),
  )
}

const isOwn = (name: string, text: string): boolean => {
  if (references.has(name) || (name === 'type' && text === 'item_reference')) return false
  return !addresses.has(name) || text.startsWith('data:')
}

/** Members whose text is the address of content, unless it is a `data:` URL. */
const addresses: ReadonlySet<string> = new Set(['url', 'image_url', 'video_url', 'audio_url', 'file_url'])

/** Members that name what an engine keeps; vLLM takes pictures and other media that it has seen by their `uuid`. */
const references: ReadonlySet<string> = new Set(['file_id', 'vector_store_id', 'container_id', 'uuid'])

const runsNothing = (tools: unknown): boolean =>
  isMissing(tools) || (Array.isArray(tools) && tools.every((tool) => clientTools.has(membersOf(tool)['type'])))

const clientTools: ReadonlySet<unknown> = new Set(['function', 'custom'])

/**
 * Members of a request that are not part of its key, by the way its response is asked for:
 *
 * - `stream` is the form of the response, which is part of the key by itself;
 * - `user`, `safety_identifier` (for whom), `prompt_cache_key`, `prompt_cache_retention`, `priority` (how the engine
 *   schedules and reuses work) reach neither model nor response. In the responses API they count: it repeats them.
 *
 * Everything else counts: `stream_options` (whether a stream ends with `usage`), also `metadata`, and `cache_salt`
 * (whoever sends a salt asks to be kept apart).
 */
export const uncountedMembers = (api: 'completions' | 'chat' | 'responses'): ReadonlySet<string> =>
  api === 'responses' ? inResponses : elsewhere

const inResponses: ReadonlySet<string> = new Set(['stream'])
const elsewhere: ReadonlySet<string> = new Set([
  'stream',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'priority',
])
