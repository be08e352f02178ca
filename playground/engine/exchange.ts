import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
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
  /** Asked for as `Authorization: Bearer`, as llama-server's `--api-key`. Undefined: none is asked for. */
  readonly apiKey: string | undefined
  /** Whether it has /v1/responses. */
  readonly hasResponses: boolean
  /** Names under which the model is served, the primary one first. */
  readonly modelNames: readonly string[]
}

/** One request and its answer. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  /** Aborts when the connection closes. */
  readonly signal: AbortSignal
}

const errorTypes = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  500: 'server_error',
  501: 'not_supported_error',
} as const

/** An answer other than 200. A handler throws it while nothing is sent. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly status: keyof typeof errorTypes

  constructor(status: keyof typeof errorTypes, message: string) {
    super(message)
    this.status = status
  }
}

/** Answers in llama-server's form, where the status is the error's code, or in Anthropic's. */
export const sendError = ({ response, isAnthropic }: ErrorTarget, { status, message }: EngineError): void => {
  const error = { message, type: errorTypes[status] }
  sendJson(response, isAnthropic ? { type: 'error', error } : { error: { code: status, ...error } }, status)
}

interface ErrorTarget {
  readonly response: ServerResponse
  readonly isAnthropic: boolean
}

export const sendJson = (response: ServerResponse, value: unknown, status = 200): void => {
  const body = JSON.stringify(value)
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body)
}

/** In UTF-16 units: room for any history that fits a context, pictures included. */
const maxBodyLength = 64 * 1024 * 1024

const objectSchema = z.record(z.string(), z.unknown())

/** The body, which must be a JSON object. @throws EngineError, or the stream's error when the client has left */
export const readObject = async ({ request }: Exchange): Promise<Readonly<Record<string, unknown>>> => {
  const { data } = objectSchema.safeParse(readJson(await text(request), maxBodyLength))
  if (data === undefined) throw new EngineError(400, 'The body is not a JSON object.')
  return data
}
