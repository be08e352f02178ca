import type { SlicedWork } from '../async/slices.ts'
import { type JsonLimits, scanJsonObject } from '../json/scan-json-object.ts'
import { type InferenceApi, textIn } from '../openai/create-body.ts'
import { findBytes } from '../openai/find-bytes.ts'
import { isModelName } from '../openai/model-in.ts'
import { maxMarkedBytes, promptMarks } from '../openai/prompt-marks.ts'
import { filterHeaders, type GatewayRequest } from './context-cache-manager.ts'
import { bodyNamePrefix, textFromFilter } from './conversation-name.ts'

/** What a turn of a named conversation tells beside its name. */
export interface NamedPrompt {
  readonly model: string
  /** As of `promptMarks`. */
  readonly marks: readonly string[]
  /** For how long the client asks its prompt to be kept. Default: nothing is asked. */
  readonly ttlSeconds?: number | undefined
}

/** What Envoy's Lua filter found in the body. Undefined: nothing, or it could not tell which of several models counts. */
export const promptFromHeaders = (request: Pick<GatewayRequest, 'header'>): NamedPrompt | undefined => {
  const [literal = '', ...others] = request.header(filterHeaders.model)
  const model = others.length > 0 ? undefined : textFromFilter(literal)
  if (model === undefined || !isModelName(model)) return undefined
  const marks = request
    .header(filterHeaders.marks)
    .join(',')
    .split(',')
    .filter((mark) => /^[\da-f]{8}$/.test(mark))
  const [ttl = ''] = request.header(filterHeaders.ttl)
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
  options: {
    /** Of the prompt. */
    readonly api: InferenceApi
    readonly kinds: readonly string[]
    readonly limits: JsonLimits
    /** The body in which the whole prompt stands. Default: the same. */
    readonly promptBody?: Buffer
  },
): SlicedWork<NamedBody | undefined> {
  const { api, kinds, limits, promptBody = body } = options
  const names = kinds.flatMap((kind) => (kind.startsWith(bodyNamePrefix) ? [kind.slice(bodyNamePrefix.length)] : []))
  const scan = yield* scanJsonObject(body, limits, ['model', 'prompt_cache_retention', ...names])
  if (scan.kind !== 'object') return undefined
  const textOf = (name: string): string | undefined => {
    const member = scan.members.get(name)
    return member && textIn(body, member)
  }
  const model = textOf('model')
  if (model === undefined || !isModelName(model)) return undefined
  const members = new Map(
    names.flatMap((name) => {
      const text = textOf(name)
      return text === undefined ? [] : [[name, text] as const]
    }),
  )
  const marks = yield* promptMarks(promptBody, api)
  const asksForAnHour = (yield* findBytes(promptBody.subarray(0, maxMarkedBytes), anHour)) !== -1
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
