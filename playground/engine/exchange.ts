import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { readJson } from '../../src/json/read-json.ts'
import type { Engine } from './engine.ts'
import { invalidRequest, type OpenAiError } from './openai-error.ts'

/** A ready engine and how it is presented. */
export interface Service {
  readonly engine: Engine
  readonly log: Logger
  readonly modelPath: string
  /** Names under which the model is served, the primary one first. */
  readonly modelNames: readonly string[]
  /** Answer tokens for a request that names no limit. */
  readonly defaultMaxTokens: number
  /** Whether every stream ends with its token counts, requested or not. */
  readonly alwaysSendUsage: boolean
}

/** One request and its answer. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  /** Aborts when the client leaves before its answer is complete, and when the server has to stop. */
  readonly signal: AbortSignal
}

const maxBodyBytes = 8 * 1024 * 1024

export const sendJson = (response: ServerResponse, status: number, value: unknown): void => {
  const text = JSON.stringify(value)
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}

export const sendError = (response: ServerResponse, { status, error }: OpenAiError): void =>
  sendJson(response, status, { error })

/** The body, which must be a JSON object; undefined: the request was answered, or the client has left. */
export const readObject = async ({ request, response }: Exchange): Promise<Record<string, unknown> | undefined> => {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      bytes += chunk.length
      // The rest is read and dropped, so that the client gets to read its answer.
      if (bytes <= maxBodyBytes) chunks.push(chunk)
    }
  } catch {
    return undefined
  }
  if (bytes > maxBodyBytes) {
    sendError(response, invalidRequest('The body is too large.', { status: 413, code: 'request_too_large' }))
    return undefined
  }
  const value = readJson(Buffer.concat(chunks).toString())
  if (isRecord(value)) return value
  sendError(response, invalidRequest('The body is not a JSON object.', { code: 'invalid_json' }))
  return undefined
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
