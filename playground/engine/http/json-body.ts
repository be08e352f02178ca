import { readJson } from '../../../src/json/read-json.ts'
import { invalidRequest, type OpenAiError } from '../openai/openai-error.ts'
import type { Exchange } from './exchange.ts'

/** What came of reading a body as a JSON object. */
export type JsonBodyOutcome =
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'invalid'; readonly error: OpenAiError }
  | { readonly kind: 'aborted' }

/** Reads the exchange's body, which must be a JSON object of at most `maxBytes` without content encoding. */
export async function readJsonObject(exchange: Exchange, maxBytes: number): Promise<JsonBodyOutcome> {
  const encoding = exchange.header('content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    const message = `The content encoding '${encoding}' is not supported.`
    return { kind: 'invalid', error: invalidRequest(message, { status: 415, code: 'unsupported_content_encoding' }) }
  }
  const body = await exchange.readBody(maxBytes)
  switch (body.kind) {
    case 'aborted':
      return { kind: 'aborted' }
    case 'too-large': {
      const message = `The body has more than ${maxBytes} bytes.`
      return { kind: 'invalid', error: invalidRequest(message, { status: 413, code: 'request_too_large' }) }
    }
    case 'read':
      return parseJsonObject(body.text)
  }
}

function parseJsonObject(text: string): JsonBodyOutcome {
  const value = readJson(text)
  if (isRecord(value)) return { kind: 'object', value }
  const message = value === undefined ? 'The body is not valid JSON.' : 'The body is not a JSON object.'
  return { kind: 'invalid', error: invalidRequest(message, { code: 'invalid_json' }) }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
