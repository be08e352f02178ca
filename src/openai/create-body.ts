import type { SlicedWork } from '../async/slices.ts'
import { readJson } from '../json/read-json.ts'
import type { JsonLimits, JsonMember } from '../json/scan-json-object.ts'
import { GatewayError } from './gateway-error.ts'
import { isModelName, maxModelLength } from './model-in.ts'
import { checkJsonObject } from './parse-json-object.ts'

/** The APIs to run a model, three of OpenAI's and Anthropic's messages, and the forms of their request bodies. */
export type InferenceApi = 'completions' | 'chat' | 'responses' | 'messages'

/** Path of each API on an engine. */
export const inferencePaths: Readonly<Record<InferenceApi, string>> = {
  completions: '/v1/completions',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
}

const apiByPath: ReadonlyMap<string, InferenceApi> = new Map([
  [inferencePaths.completions, 'completions'],
  [inferencePaths.chat, 'chat'],
  [inferencePaths.responses, 'responses'],
  [inferencePaths.messages, 'messages'],
])

/** The API of a path, with or without its query; undefined for other paths. */
export const inferenceApiOf = (path: string): InferenceApi | undefined => apiByPath.get(path.split('?', 1)[0] ?? '')

/** Where no path fixes the form. A body with `messages` may be Anthropic's, too, and counts as OpenAI's. */
const formByMember = { messages: 'chat', prompt: 'completions', input: 'responses' } as const
const memberByForm = { completions: 'prompt', chat: 'messages', responses: 'input', messages: 'messages' } as const

type PromptMember = keyof typeof formByMember
const promptMembers: readonly PromptMember[] = ['messages', 'prompt', 'input']

/** What a body of a create says. */
export interface CreateBody {
  readonly model: string
  readonly form: InferenceApi
}

/**
 * Checks the members that the gateway reads of a body that creates a session; the engine checks the rest. `form` is
 * fixed by the path; undefined on `/v1/context`: the one of `prompt`, `messages` and `input` that is not null decides.
 * No value is built but the model's name. In slices.
 * @throws GatewayError `missing_required_parameter`, `invalid_type`, or as `checkJsonObject`
 */
export function* readCreateBody(
  body: Buffer,
  form: InferenceApi | undefined,
  limits: JsonLimits,
): SlicedWork<CreateBody> {
  const { members } = yield* checkJsonObject(body, limits, promptMembers)
  const given = members.get('model')
  if (given === undefined) throw missing('model', 'The model is missing.')
  const model = textIn(body, given)
  if (model === undefined || !isModelName(model))
    throw invalid('model', `model is a string of 1 to ${maxModelLength} characters.`)
  const present = new Map([...members].filter(([, { start }]) => body[start] !== firstOfNull))
  const name = promptMember(present, form)
  if (!isPrompt(body, name, present.get(name))) throw invalid(name, `${name} is empty or of the wrong type.`)
  return { model, form: form ?? formByMember[name] }
}

const quote = 0x22
const openArray = 0x5b
const firstOfNull = 0x6e
/** A character beyond the first 65,536 has two escapes of six bytes, and counts as two. */
const maxModelBytes = 6 * maxModelLength + 2

/** The text of a member, if it is one and no longer than a model's name may be. */
export const textIn = (body: Buffer, { start, end }: JsonMember): string | undefined => {
  if (body[start] !== quote || end - start > maxModelBytes) return undefined
  const text = readJson(body.toString('utf8', start, end))
  return typeof text === 'string' ? text : undefined
}

const isPrompt = (body: Buffer, name: PromptMember, member: JsonMember | undefined): boolean => {
  if (member === undefined) return false
  const { start, end, items, hasScalars } = member
  if (body[start] === quote) return name !== 'messages' && end - start > '""'.length
  return body[start] === openArray && items > 0 && (name !== 'messages' || !hasScalars)
}

const missing = (param: string, message: string) => new GatewayError('missing_required_parameter', { param, message })
const invalid = (param: string, message: string) => new GatewayError('invalid_type', { param, message })

const promptMember = (present: ReadonlyMap<string, JsonMember>, form: InferenceApi | undefined): PromptMember => {
  const candidates = form === undefined ? promptMembers : [memberByForm[form]]
  const [member, another] = candidates.filter((candidate) => present.has(candidate))
  const wanted = candidates.join(', ')
  if (member === undefined && form === undefined) throw missing('prompt', `One of ${wanted} is required.`)
  if (member === undefined) throw missing(wanted, `${wanted} is missing.`)
  if (another !== undefined) throw invalid(another, `Give either ${member} or ${another}, not both.`)
  return member
}
