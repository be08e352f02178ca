import { createHash } from 'node:crypto'
import { types } from 'node:util'

/** Stands wherever something was left out. */
export const redacted = '[redacted]'

/** A name without the marks of its spelling: `x-session-id`, `xSessionId` and `X_SESSION_ID` are one name. */
const bare = (name: string): string => name.replaceAll(/[-_]/g, '').toLowerCase()

/** Names of credentials and raw ids: their values never reach a log, wherever they stand. */
const credentialNames: ReadonlySet<string> = new Set(
  [
    'authorization',
    'proxy-authorization',
    'api-key',
    'x-api-key',
    'cookie',
    'set-cookie',
    'credential',
    'password',
    'secret',
    'token',
    'redis-url',
    'idempotency-key',
    'session-id',
    'x-session-id',
  ].map(bare),
)

/** Names of what people say to a model and hear from it. A number under such a name is a count. */
const contentNames: ReadonlySet<string> = new Set(
  ['prompt', 'messages', 'input', 'instructions', 'content', 'text', 'output', 'choices', 'body'].map(bare),
)

const isSecret = (name: string, value: unknown): boolean => {
  if (value === undefined) return false
  if (credentialNames.has(bare(name))) return true
  return contentNames.has(bare(name)) && typeof value !== 'number'
}

/** Deeper than this nothing is logged: log fields are flat, and a cycle has to end somewhere. */
const maxDepth = 6
/** Longer lists and texts are cut. */
const maxItems = 100
const maxTextLength = 2000

/** Fields as they may be logged: secret names redacted at every depth, and every text scrubbed. */
export const redactFields = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  redactEntries(fields, 0)

const redactEntries = (fields: object, depth: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields)
      .slice(0, maxItems)
      .map(([name, value]) => [name, isSecret(name, value) ? redacted : redactValue(value, depth)]),
  )

const redactValue = (value: unknown, depth: number): unknown => {
  if (typeof value === 'string') return scrubText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= maxDepth) return '[…]'
  if (types.isNativeError(value)) return describeError(value, depth + 1)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (types.isDate(value)) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (types.isMap(value)) return redactEntries(Object.fromEntries(value), depth + 1)
  if (Array.isArray(value) || types.isSet(value)) {
    return [...value].slice(0, maxItems).map((item) => redactValue(item, depth + 1))
  }
  return redactEntries(value, depth + 1)
}

/** The parser's message quotes what it could not read, which is the client's text. */
const quotesItsInput = (error: Error): boolean => error.name === 'SyntaxError'

const describeError = (error: Error, depth: number): Record<string, unknown> => {
  const code: unknown = 'code' in error ? error.code : undefined
  return {
    type: error.name,
    message: quotesItsInput(error) ? redacted : scrubText(error.message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    stack: stackFrames(error),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth) }),
    ...('errors' in error ? { errors: redactValue(error.errors, depth) } : {}),
  }
}

/** Only the lines that name places: the first ones repeat the message, which may span several. */
const stackFrames = (error: Error): readonly string[] =>
  (error.stack ?? '')
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .map((line) => line.trim())

/** A text with session ids shortened to their {@link shortKey}, and credentials and passwords in URLs redacted. */
export const scrubText = (text: string): string => {
  const scrubbed = text
    .replace(/ctx_[A-Za-z0-9_-]{32}/g, (id) => `session:${shortKey(id)}`)
    .replace(/\b(Bearer|Basic)\s+[^\s"',]+/gi, `$1 ${redacted}`)
    .replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]*@/gi, `$1${redacted}@`)
  return scrubbed.length > maxTextLength ? `${scrubbed.slice(0, maxTextLength)}…` : scrubbed
}

/**
 * The name under which a session or tenant may be logged: the first 8 characters of its key. Whatever is no key (SHA-256 in base64url)
 * is made one first, so that a raw session id has the same short name as the session's key, and cannot be told from it.
 */
export const shortKey = (keyOrId: string): string => (isKey.test(keyOrId) ? keyOrId : hash(keyOrId)).slice(0, 8)

const isKey = /^[A-Za-z0-9_-]{43}$/

const hash = (text: string): string => createHash('sha256').update(text).digest('base64url')
