import type { SlicedWork } from '../../async/slices.ts'
import { arrayItems } from '../../json/array-items.ts'
import { objectMembers } from '../../json/object-members.ts'
import { GatewayError } from '../gateway-error.ts'
import { isGiven, isList, isText, unsupported } from './body-values.ts'
import { chatMessages } from './chat-messages.ts'
import { type ChatMembers, chatReasoning, chatText, chatToolChoice, chatTools } from './chat-options.ts'
import { type JsonText, jsonList, jsonObject, jsonText } from './json-text.ts'
import { echoOf } from './response-echo.ts'

/** A request of /v1/responses as one of /v1/chat/completions. */
export interface ChatRequest {
  readonly body: Buffer
  /** What its answer repeats of the request. */
  readonly echo: string
}

/** What is written otherwise, what only the gateway reads, and what only answers repeat. */
const leftOut: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'metadata',
  'store',
  'previous_response_id',
  'conversation',
  'background',
  'truncation',
  'stream_options',
])

/** Members without a counterpart, and why; those of chat itself would get in the way of what is written here. */
const refused: ReadonlyMap<string, string> = new Map([
  ['prompt', 'Prompt templates are not supported.'],
  ['top_logprobs', 'The probabilities of tokens are not supported.'],
  ['context_management', 'The gateway does not compact contexts.'],
  ['max_tool_calls', 'Only built-in tools are counted by it, of which there are none.'],
  ...['messages', 'n', 'functions', 'function_call', 'response_format', 'max_tokens', 'max_completion_tokens'].map(
    (name) => [name, `${name} is no parameter of /v1/responses.`] as const,
  ),
])

/**
 * Translates a request body that was checked before. Values pass byte for byte, and members that are not OpenAI's, such as
 * an engine's own sampling parameters, unchanged. In slices.
 * @throws GatewayError `unsupported_parameter` (`param` names the member), `missing_required_parameter` (`input`),
 *   `invalid_type`, `invalid_value`
 */
export function* toChatRequest(body: Buffer): SlicedWork<ChatRequest> {
  const given = yield* objectMembers(body)
  const members = new Map<string, Buffer | JsonText>()
  for (const [name, value] of given) {
    if (!isGiven(value)) continue
    const why = refused.get(name)
    if (why !== undefined) throw unsupported(name, why)
    for (const [chatName, chatValue] of yield* chatMembers(name, value)) members.set(chatName, chatValue)
  }
  const [model, messages] = [given.get('model'), yield* messagesOf(given)]
  if (!members.has('tools')) for (const name of ['tool_choice', 'parallel_tool_calls']) members.delete(name)
  const text = jsonObject([['model', model], ['messages', jsonList(messages)], ...members])
  return { body: Buffer.concat(text), echo: echoOf(given) }
}

function* messagesOf(given: ReadonlyMap<string, Buffer>): SlicedWork<readonly JsonText[]> {
  const [input, instructions] = [given.get('input'), given.get('instructions')]
  const missing = () => new GatewayError('missing_required_parameter', { param: 'input', message: 'input is missing.' })
  if (!isGiven(input)) throw missing()
  const messages = isText(input)
    ? [jsonText`{"role":"user","content":${input}}`]
    : yield* chatMessages(yield* arrayItems(input))
  const system = isGiven(instructions) ? [jsonText`{"role":"system","content":${instructions}}`] : []
  if (messages.length === 0) throw missing()
  return [...system, ...messages]
}

function* chatMembers(name: string, value: Buffer): SlicedWork<ChatMembers> {
  switch (name) {
    case 'tools': {
      const tools = yield* chatTools(value)
      return tools.length === 0 ? [] : [['tools', jsonList(tools)]]
    }
    case 'tool_choice':
      return [['tool_choice', yield* chatToolChoice(value)]]
    case 'text':
      return yield* chatText(value)
    case 'reasoning':
      return yield* chatReasoning(value)
    case 'max_output_tokens':
      return [['max_tokens', value]]
    case 'stream':
      return value[0] === firstOfTrue ? [[name, value], withUsage] : [[name, value]]
    case 'include': {
      const asked = isList(value) ? yield* arrayItems(value) : [value]
      if (asked.length > 0) throw unsupported('include', 'Nothing can be included in an answer.')
      return []
    }
    default:
      return leftOut.has(name) ? [] : [[name, value]]
  }
}

const firstOfTrue = 0x74
/** Else the stream would not tell its tokens. */
const withUsage = ['stream_options', jsonText`{"include_usage":true}`] as const
