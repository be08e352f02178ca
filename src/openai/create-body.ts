import { GatewayError } from './gateway-error.ts'

/** Which of OpenAI's request forms a body is. */
export type PromptForm = 'completions' | 'chat' | 'responses'

const formByMember = { prompt: 'completions', messages: 'chat', input: 'responses' } as const

type PromptMember = keyof typeof formByMember
const promptMembers: readonly PromptMember[] = ['messages', 'prompt', 'input']

const isPrompt: Readonly<Record<PromptMember, (value: unknown) => boolean>> = {
  prompt: (value) => (typeof value === 'string' && value !== '') || (Array.isArray(value) && value.length > 0),
  messages: (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((message) => typeof message === 'object' && message !== null),
  input: (value) => (typeof value === 'string' && value !== '') || (Array.isArray(value) && value.length > 0),
}

/**
 * Checks the body that creates a session, as far as the gateway must understand it; the rest is the engine's. `form` is fixed by the path,
 * or, on `/v1/context`, undefined: then the one of `prompt`, `messages` and `input` that is there decides.
 * @throws GatewayError `missing_required_parameter`, `invalid_type`
 */
export const readCreateBody = (
  body: ReadonlyMap<string, unknown>,
  form: PromptForm | undefined,
): { readonly model: string; readonly form: PromptForm } => {
  const model = body.get('model')
  if (model === undefined)
    throw new GatewayError('missing_required_parameter', { param: 'model', message: 'The model is missing.' })
  if (typeof model !== 'string' || model === '')
    throw new GatewayError('invalid_type', { param: 'model', message: 'model is a non-empty string.' })
  const member = promptMember(body, form)
  if (!isPrompt[member](body.get(member))) {
    throw new GatewayError('invalid_type', { param: member, message: `${member} is empty or of the wrong type.` })
  }
  return { model, form: formByMember[member] }
}

const promptMember = (body: ReadonlyMap<string, unknown>, form: PromptForm | undefined): PromptMember => {
  const candidates =
    form === undefined ? promptMembers : promptMembers.filter((member) => formByMember[member] === form)
  const present = candidates.filter((member) => body.has(member))
  const [member, another] = present
  if (member === undefined) {
    const wanted = candidates.join(', ')
    throw new GatewayError('missing_required_parameter', {
      param: candidates.length === 1 ? wanted : 'prompt',
      message: candidates.length === 1 ? `${wanted} is missing.` : `One of ${wanted} is required.`,
    })
  }
  if (another !== undefined)
    throw new GatewayError('invalid_type', {
      param: another,
      message: `Give either ${member} or ${another}, not both.`,
    })
  return member
}
