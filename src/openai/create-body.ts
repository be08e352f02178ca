import { GatewayError } from './gateway-error.ts'
import { maxModelLength } from './scan-json.ts'

/** OpenAI's three APIs to run a model, and the forms of their request bodies. */
export type InferenceApi = 'completions' | 'chat' | 'responses'

/** Path of each API on an engine. */
export const inferencePaths: Readonly<Record<InferenceApi, string>> = {
  completions: '/v1/completions',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

const apiByPath: ReadonlyMap<string, InferenceApi> = new Map([
  [inferencePaths.completions, 'completions'],
  [inferencePaths.chat, 'chat'],
  [inferencePaths.responses, 'responses'],
])

/** The API of a path without query; undefined for other paths. */
export const inferenceApiOf = (path: string): InferenceApi | undefined => apiByPath.get(path)

const formByMember = { messages: 'chat', prompt: 'completions', input: 'responses' } as const

type PromptMember = keyof typeof formByMember
const promptMembers: readonly PromptMember[] = ['messages', 'prompt', 'input']

const isPrompt = (member: PromptMember, value: unknown): boolean => {
  if (member !== 'messages' && typeof value === 'string') return value !== ''
  const mayHold = (item: unknown): boolean => member !== 'messages' || (typeof item === 'object' && item !== null)
  return Array.isArray(value) && value.length > 0 && value.every(mayHold)
}

/**
 * Checks the members that the gateway reads of a body that creates a session; the engine checks the rest. `form` is
 * fixed by the path; undefined on `/v1/context`: the one of `prompt`, `messages` and `input` that is not null decides.
 * @throws GatewayError `missing_required_parameter`, `invalid_type`
 */
export const readCreateBody = (
  body: ReadonlyMap<string, unknown>,
  form: InferenceApi | undefined,
): { readonly model: string; readonly form: InferenceApi } => {
  const model = body.get('model')
  if (model === undefined) throw missing('model', 'The model is missing.')
  // Half a surrogate pair is no UTF-8: Envoy would refuse every reply that names the model.
  if (typeof model !== 'string' || model === '' || model.length > maxModelLength || /\p{Cs}/u.test(model))
    throw invalid('model', `model is a string of 1 to ${maxModelLength} characters.`)
  const member = promptMember(body, form)
  if (!isPrompt(member, body.get(member))) throw invalid(member, `${member} is empty or of the wrong type.`)
  return { model, form: formByMember[member] }
}

const missing = (param: string, message: string) => new GatewayError('missing_required_parameter', { param, message })
const invalid = (param: string, message: string) => new GatewayError('invalid_type', { param, message })

const promptMember = (body: ReadonlyMap<string, unknown>, form: InferenceApi | undefined): PromptMember => {
  const candidates =
    form === undefined ? promptMembers : promptMembers.filter((member) => formByMember[member] === form)
  const [member, another] = candidates.filter((candidate) => (body.get(candidate) ?? null) !== null)
  const wanted = candidates.join(', ')
  if (member === undefined && form === undefined) throw missing('prompt', `One of ${wanted} is required.`)
  if (member === undefined) throw missing(wanted, `${wanted} is missing.`)
  if (another !== undefined) throw invalid(another, `Give either ${member} or ${another}, not both.`)
  return member
}
