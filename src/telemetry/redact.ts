import { hash } from 'node:crypto'
import { types } from 'node:util'

/** Replaces a redacted value. */
const redacted = '[redacted]'

/** Normalises a name: `x-session-id`, `xSessionId` and `X_SESSION_ID` are equal. */
const bare = (name: string): string => name.replaceAll(/[-_]/g, '').toLowerCase()

/** Names of credentials and raw ids. Their values are redacted at every depth. */
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

/** Names of prompts and answers. A number under such a name is a count, and is logged. */
const contentNames: ReadonlySet<string> = new Set(
  ['prompt', 'messages', 'input', 'instructions', 'content', 'text', 'output', 'choices', 'body'].map(bare),
)

const isSecret = (name: string, value: unknown): boolean => {
  if (value === undefined) return false
  if (credentialNames.has(bare(name))) return true
  return contentNames.has(bare(name)) && typeof value !== 'number'
}

/** Values deeper than this are cut, which also ends cycles. */
const maxDepth = 6
/** Longer lists and strings are cut. */
const maxItems = 100
const maxTextLength = 2000

/** Redacts fields with secret names at every depth, and scrubs every string. */
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

/** A parser's message quotes its input, which may be a prompt. */
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

/** Only the frames: the first lines of a stack repeat the message, which may span several lines. */
const stackFrames = (error: Error): readonly string[] =>
  (error.stack ?? '')
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .map((line) => line.trim())

/** Replaces session ids by the first 8 characters of their sessions' keys, and redacts credentials, also in URLs. */
export const scrubText = (text: string): string => {
  const scrubbed = text
    .replace(/ctx_[A-Za-z0-9_-]{32}/g, (id) => `session:${hash('sha256', id, 'base64url').slice(0, 8)}`)
    .replace(/\b(Bearer|Basic)\s+[^\s"',]+/gi, `$1 ${redacted}`)
    .replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]*@/gi, `$1${redacted}@`)
  return scrubbed.length > maxTextLength ? `${scrubbed.slice(0, maxTextLength)}…` : scrubbed
}
