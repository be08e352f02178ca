import type { SlicedWork } from '../async/slices.ts'
import { arrayItems } from '../json/array-items.ts'
import { membersOf } from '../json/members-of.ts'
import { readJson } from '../json/read-json.ts'
import type { JsonLimits, JsonMember, JsonScan } from '../json/scan-json-object.ts'
import { textIn } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { checkJsonObject } from '../openai/parse-json-object.ts'

/** What the body of `POST /v1/responses` asks of the gateway. */
export interface ResponsesTurn {
  /** Whose items go in front of its own. Undefined: it continues nothing. */
  readonly continued: { readonly kind: 'response' | 'conversation'; readonly id: string } | undefined
  /** `store`: the answer is to be kept. Default: true, as in OpenAI's API. */
  readonly keeps: boolean
  /** `truncation` is `auto`: the oldest items may be left out. */
  readonly mayTruncate: boolean
  /** Undefined: none is given, or none that an engine has. */
  readonly model: string | undefined
  /** `max_output_tokens`. Undefined: it is not given. */
  readonly answerTokens: number | undefined
  /** The new items of `input`, each JSON; a text is a message of the user. Views of the body, but for such a message. */
  readonly items: readonly Buffer[]
  /** Where the members stand that {@link expandBody} changes. */
  readonly scan: Extract<JsonScan, { kind: 'object' }>
}

const names = [
  'input',
  'store',
  'previous_response_id',
  'conversation',
  'background',
  'truncation',
  'max_output_tokens',
] as const
type Name = (typeof names)[number]

/**
 * Reads a request body. The engine checks the rest of it. In slices.
 * @throws GatewayError as `checkJsonObject`; `invalid_type`, `duplicate_key`, `mutually_exclusive_parameters`,
 *   `unsupported_parameter` (`background`)
 */
export function* readResponsesTurn(body: Buffer, limits: JsonLimits): SlicedWork<ResponsesTurn> {
  const scan = yield* checkJsonObject(body, limits, names)
  const { members } = scan
  const twice = names.find((name) => (members.get(name)?.count ?? 0) > 1)
  if (twice !== undefined) throw new GatewayError('duplicate_key', { param: twice })
  const read = (name: Name) => valueIn(body, members.get(name))
  if (flag('background', read('background')) === true)
    throw new GatewayError('unsupported_parameter', {
      param: 'background',
      message:
        'background is not supported: no answer is computed without its client. Leave it out, or set it to false.',
    })
  const responseId = idIn('previous_response_id', read('previous_response_id'))
  const conversation = read('conversation')
  const conversationId = idIn('conversation', membersOf(conversation)['id'] ?? conversation)
  if (responseId !== undefined && conversationId !== undefined)
    throw new GatewayError('mutually_exclusive_parameters', {
      message:
        "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of them.",
    })
  return {
    continued:
      (responseId === undefined ? undefined : { kind: 'response', id: responseId }) ??
      (conversationId === undefined ? undefined : { kind: 'conversation', id: conversationId }),
    keeps: flag('store', read('store')) ?? true,
    mayTruncate: read('truncation') === 'auto',
    model: modelIn(body, members.get('model')),
    answerTokens: countIn(read('max_output_tokens')),
    items: yield* itemsIn(body, members.get('input')),
    scan,
  }
}

/** Longest value that is built. */
const maxValueBytes = 2048

/** Undefined: the member is missing, null, or longer than any value of its kind. */
const valueIn = (body: Buffer, member: JsonMember | undefined): unknown => {
  if (member === undefined || member.end - member.start > maxValueBytes) return undefined
  return readJson(body.toString('utf8', member.start, member.end)) ?? undefined
}

const flag = (name: Name, value: unknown): boolean | undefined => {
  if (value === undefined || typeof value === 'boolean') return value
  throw new GatewayError('invalid_type', { param: name, message: `${name} is true or false.` })
}

const idIn = (name: Name, value: unknown): string | undefined => {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value
  throw new GatewayError('invalid_type', { param: name, message: `${name} is an id, as this API returned it.` })
}

const modelIn = (body: Buffer, member: JsonMember | undefined): string | undefined => member && textIn(body, member)

const countIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined

const openArray = 0x5b
const quote = 0x22

function* itemsIn(body: Buffer, input: JsonMember | undefined): SlicedWork<readonly Buffer[]> {
  if (input === undefined) return []
  const text = body.subarray(input.start, input.end)
  if (text[0] === openArray) {
    if (input.hasScalars) throw new GatewayError('invalid_type', { param: 'input', message: 'Items are objects.' })
    return yield* arrayItems(text)
  }
  if (text[0] === quote) return [Buffer.concat([userMessage, text, endOfObject])]
  if (textIn(body, input) === undefined && text.toString('latin1').trim() === 'null') return []
  throw new GatewayError('invalid_type', { param: 'input', message: 'input is a text or a list of items.' })
}

const userMessage = Buffer.from('{"type":"message","role":"user","content":')
const endOfObject = Buffer.from('}')
