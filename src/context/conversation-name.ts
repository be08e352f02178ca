import { readJson } from '../json/read-json.ts'
import type { GatewayRequest } from './context-cache-manager.ts'
import { containsSessionId } from './session-id.ts'

/** A client's own name for a conversation. */
export interface ConversationName {
  /** The header or body member that it was sent in, as the configuration spells it. */
  readonly kind: string
  readonly name: string
}

/** Members of a request body that may hold a name are spelled with this in front. */
export const bodyNamePrefix = 'body.'

/** Longest name, in bytes of a header or characters of a body member. */
const maxNameLength = 256

/** Headers that are part of the name that another header gives: the sub-agents of one conversation. */
const furtherParts: Readonly<Record<string, string>> = { 'x-claude-code-session-id': 'x-claude-code-agent-id' }

/** A member of the body, as Envoy's Lua filter found it: `<member>:<text as in JSON>`. */
const bodyNameHeader = 'x-context-name'

/** Whether a text can be a name: neither empty nor long, and without control characters. */
export const isName = (text: string): boolean => text !== '' && text.length <= maxNameLength && !/\p{Cc}/u.test(text)

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
    if (name !== undefined && isName(name)) return { kind, name: withFurtherPart(request, kind, name) }
  }
  return nameFromFilter(request)
}

const noMembers: ReadonlyMap<string, string> = new Map()

const headerName = (request: Pick<GatewayRequest, 'header'>, kind: string): string | undefined => {
  const [value, ...others] = request.header(kind)
  return value === undefined || others.length > 0 || containsSessionId([value]) ? undefined : value
}

const withFurtherPart = (request: Pick<GatewayRequest, 'header'>, kind: string, name: string): string => {
  const part = furtherParts[kind]
  const value = part === undefined ? undefined : headerName(request, part)
  return value !== undefined && isName(value) ? `${name}\n${value}` : name
}

const nameFromFilter = (request: Pick<GatewayRequest, 'header'>): ConversationName | undefined => {
  const [value] = request.header(bodyNameHeader)
  const [, member, literal = ''] = /^([\w-]{1,64}):(.*)$/s.exec(value ?? '') ?? []
  const name = member === undefined ? undefined : readJson(`"${Buffer.from(literal, 'latin1').toString()}"`)
  return typeof name === 'string' && isName(name) ? { kind: `${bodyNamePrefix}${member}`, name } : undefined
}
