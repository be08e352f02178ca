import { readJson } from '../json/read-json.ts'
import { filterHeaders, type GatewayRequest } from './context-cache-manager.ts'
import { containsSessionId } from './session-id.ts'

/** A client's own name for a conversation. */
export interface ConversationName {
  /** The header or body member that it was sent in, as the configuration spells it. */
  readonly kind: string
  readonly name: string
  /** Name, of the same kind, of the conversation that this one is a part of. Undefined: of none, as far as is known. */
  readonly parent?: string | undefined
}

/** Members of a request body that may hold a name are spelled with this in front. */
export const bodyNamePrefix = 'body.'

/** Longest name, in bytes of a header or characters of a body member. */
const maxNameLength = 256

/** Headers that are a part of the name that another header gives. */
const partHeaders: Readonly<Record<string, string>> = { 'x-claude-code-session-id': 'x-claude-code-agent-id' }

/** Names a sub-agent's parent, but for the kinds that have a header of their own for it. */
const parentHeader = 'x-parent-session-id'
const parentHeaders: Readonly<Record<string, string>> = { 'thread-id': 'session-id' }

/** Whether a text can be a name: neither empty nor long, and without control characters. */
const isName = (text: string): boolean => text !== '' && text.length <= maxNameLength && !/\p{Cc}/u.test(text)

/**
 * The first name of a request, in the order of `kinds`: headers, and members of the body as far as `inBody` has them. At
 * last the member that Envoy's Lua filter has found. An id of this gateway is no name.
 */
export const conversationNameOf = (
  request: Pick<GatewayRequest, 'header'>,
  kinds: readonly string[],
  inBody: ReadonlyMap<string, string> = noMembers,
): ConversationName | undefined => {
  for (const kind of kinds) {
    const name = kind.startsWith(bodyNamePrefix)
      ? inBody.get(kind.slice(bodyNamePrefix.length))
      : headerName(request, kind)
    if (name !== undefined && isName(name)) return withParent(request, { kind, name })
  }
  return nameFromFilter(request)
}

const noMembers: ReadonlyMap<string, string> = new Map()

const headerName = (request: Pick<GatewayRequest, 'header'>, kind: string): string | undefined => {
  const [value, ...others] = request.header(kind)
  return value === undefined || others.length > 0 || containsSessionId([value]) ? undefined : value
}

/** A sub-agent has a name of its own, or a further part in the name of its conversation. */
const withParent = (request: Pick<GatewayRequest, 'header'>, { kind, name }: ConversationName): ConversationName => {
  const part = partHeaders[kind]
  const agent = part === undefined ? undefined : headerName(request, part)
  if (agent !== undefined && isName(agent)) return { kind, name: `${name}\n${agent}`, parent: name }
  const parent = headerName(request, parentHeaders[kind] ?? parentHeader)
  return { kind, name, parent: parent === name ? undefined : parent }
}

/** A text that Envoy's Lua filter copied from a body, where it stood in quotes. Undefined: it is not JSON. */
export const textFromFilter = (literal: string): string | undefined => {
  const text = readJson(`"${Buffer.from(literal, 'latin1').toString()}"`)
  return typeof text === 'string' ? text : undefined
}

/** A member of the body: `<member>:<text as in JSON>`. */
const nameFromFilter = (request: Pick<GatewayRequest, 'header'>): ConversationName | undefined => {
  const [value] = request.header(filterHeaders.name)
  const [, member, literal = ''] = /^([\w-]{1,64}):(.*)$/s.exec(value ?? '') ?? []
  const name = member === undefined ? undefined : textFromFilter(literal)
  return name !== undefined && isName(name) ? { kind: `${bodyNamePrefix}${member}`, name } : undefined
}
