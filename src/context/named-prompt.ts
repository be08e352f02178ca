import type { SlicedWork } from '../async/slices.ts'
import { readJson } from '../json/read-json.ts'
import { type JsonLimits, type JsonMember, scanJsonObject } from '../json/scan-json-object.ts'
import type { InferenceApi } from '../openai/create-body.ts'
import { findBytes } from '../openai/find-bytes.ts'
import { maxModelLength } from '../openai/model-in.ts'
import { maxMarkedBytes, promptMarks } from '../openai/prompt-marks.ts'
import type { GatewayRequest } from './context-cache-manager.ts'
import { bodyNamePrefix } from './conversation-name.ts'

/** What a turn of a named conversation tells beside its name. */
export interface NamedPrompt {
  readonly model: string
  /** As of `promptMarks`. */
  readonly marks: readonly string[]
  /** For how long the client asks its prompt to be kept. Default: nothing is asked. */
  readonly ttlSeconds?: number | undefined
}

const promptHeaders = { model: 'x-context-model', marks: 'x-context-marks', ttl: 'x-context-ttl' } as const

/** What Envoy's Lua filter found in the body. Undefined: nothing, or it could not tell which of several models counts. */
export const promptFromHeaders = (request: Pick<GatewayRequest, 'header'>): NamedPrompt | undefined => {
  const [literal = '', ...others] = request.header(promptHeaders.model)
  const model = others.length > 0 ? undefined : readJson(`"${Buffer.from(literal, 'latin1').toString()}"`)
  if (!isModel(model)) return undefined
  const marks = request
    .header(promptHeaders.marks)
    .join(',')
    .split(',')
    .filter((mark) => /^[\da-f]{8}$/.test(mark))
  const [ttl = ''] = request.header(promptHeaders.ttl)
  return { model, marks: marks.length === 0 ? unmarked : marks, ttlSeconds: retentions.get(ttl) }
}

/** What a body says of its conversation. */
export interface NamedBody {
  readonly prompt: NamedPrompt
  /** Members that may hold a name, by theirs. */
  readonly members: ReadonlyMap<string, string>
}

/** Reads a body, whatever is odd about which makes it undefined. In slices. */
export function* readNamedBody(
  body: Buffer,
  {
    api,
    kinds,
    limits,
  }: { readonly api: InferenceApi; readonly kinds: readonly string[]; readonly limits: JsonLimits },
): SlicedWork<NamedBody | undefined> {
  const names = kinds.flatMap((kind) => (kind.startsWith(bodyNamePrefix) ? [kind.slice(bodyNamePrefix.length)] : []))
  const scan = yield* scanJsonObject(body, limits, ['model', 'prompt_cache_retention', ...names])
  if (scan.kind !== 'object') return undefined
  const textOf = (name: string): string | undefined => textIn(body, scan.members.get(name))
  const model = textOf('model')
  if (!isModel(model)) return undefined
  const members = new Map(
    names.flatMap((name) => {
      const text = textOf(name)
      return text === undefined ? [] : [[name, text] as const]
    }),
  )
  const marks = yield* promptMarks(body, api)
  const asksForAnHour = (yield* findBytes(body.subarray(0, maxMarkedBytes), anHour)) !== -1
  const asked = [textOf('prompt_cache_retention') ?? '', asksForAnHour ? '1h' : '']
  const ttlSeconds = Math.max(...asked.map((retention) => retentions.get(retention) ?? 0))
  return { prompt: { model, marks, ttlSeconds }, members }
}

/** OpenAI's `prompt_cache_retention` and the TTL of Anthropic's `cache_control`, in seconds; shorter ones raise nothing. */
const retentions: ReadonlyMap<string, number> = new Map([
  ['24h', 86_400],
  ['1h', 3600],
])

const anHour = Buffer.from('"ttl":"1h"')

const unmarked: readonly string[] = ['-']

/** Half a surrogate pair is no UTF-8: Envoy would refuse every reply that names the model. */
const isModel = (text: unknown): text is string =>
  typeof text === 'string' && text !== '' && text.length <= maxModelLength && !/\p{Cs}/u.test(text)

const maxTextBytes = 6 * maxModelLength + 2

const textIn = (body: Buffer, member: JsonMember | undefined): string | undefined => {
  if (member === undefined || member.end - member.start > maxTextBytes) return undefined
  const value = readJson(body.toString('utf8', member.start, member.end))
  return typeof value === 'string' ? value : undefined
}
