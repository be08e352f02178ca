import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import { readJson } from '../../src/json/read-json.ts'
import type { Engine } from './engine.ts'

/** A ready engine and how it is presented. */
export interface Service {
  readonly engine: Engine
  readonly log: Logger
  readonly modelPath: string
  /** Where slots are saved, shared by all pods: llama-server's `--slot-save-path`. Undefined: they cannot be saved. */
  readonly kvDirectory: string | undefined
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

interface ErrorDetails {
  readonly status?: number
  /** The field of the body. */
  readonly param?: string
  /** A word for programs. */
  readonly code?: string
}

/** What the client receives as an error, in the form of OpenAI's. A handler throws it while nothing is sent. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly status: number
  readonly body: Readonly<Record<string, string | null>>

  constructor(type: string, message: string, { status = 400, param, code }: ErrorDetails) {
    super(message)
    this.status = status
    this.body = { message, type, param: param ?? null, code: code ?? null }
  }
}

/** The client sent something that cannot be served: status 400 unless `details` say otherwise. */
export const invalidRequest = (message: string, details: ErrorDetails = {}): RequestError =>
  new RequestError('invalid_request_error', message, details)

/** The engine cannot serve it now: status 503 unless `details` say otherwise. */
export const serverError = (message: string, details: ErrorDetails = {}): RequestError =>
  new RequestError('server_error', message, { status: 503, ...details })

const objectSchema = z.record(z.string(), z.unknown())
const maxBodyBytes = 8 * 1024 * 1024

export const sendJson = (response: ServerResponse, status: number, value: unknown): void => {
  const text = JSON.stringify(value)
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}

/** The body, which must be a JSON object. @throws RequestError, or the stream's error when the client has left */
export const readObject = async ({ request }: Exchange): Promise<Readonly<Record<string, unknown>>> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    // The rest is read and dropped, so that the client gets to read its answer.
    if (bytes <= maxBodyBytes) chunks.push(chunk)
  }
  if (bytes > maxBodyBytes) {
    throw invalidRequest('The body is too large.', { status: 413, code: 'request_too_large' })
  }
  const { data } = objectSchema.safeParse(readJson(Buffer.concat(chunks).toString()))
  if (data === undefined) throw invalidRequest('The body is not a JSON object.', { code: 'invalid_json' })
  return data
}
