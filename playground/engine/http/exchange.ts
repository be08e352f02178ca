// One HTTP request and its answer, reduced to what the handlers need.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerEvent } from '../openai/answer-format.ts'
import type { OpenAiError } from '../openai/openai-error.ts'

/** What came of reading a body. */
export type BodyOutcome =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'aborted' }

/** A request and its answer. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** Time of arrival, on `performance.now()`'s clock. */
  readonly arrivedMs: number
  /** Aborts when the client leaves before its answer is complete, and on `stop`. */
  readonly signal: AbortSignal
  /** Aborts the signal because the server must stop. */
  stop(): void
  /** Whether nobody is there to read an answer. */
  clientIsGone(): boolean
  header(name: string): string | undefined
  /** Reads the whole body, unless it has more than `maxBytes`. */
  readBody(maxBytes: number): Promise<BodyOutcome>
  sendJson(status: number, value: unknown, headers?: Readonly<Record<string, string>>): void
  sendText(status: number, contentType: string, text: string): void
  sendError(error: OpenAiError): void
  /**
   * Begins a stream of server-sent events with the first call. Answers are short enough to be buffered for a slow
   * reader.
   */
  sendEvents(events: readonly ServerEvent[]): void
  endEvents(): void
  hasBegunAnswer(): boolean
}

/** Wraps Node's pair of objects. */
export function createExchange(request: IncomingMessage, response: ServerResponse): Exchange {
  const ending = new AbortController()
  let clientIsGone = false
  response.once('close', () => {
    clientIsGone = !response.writableFinished
    if (clientIsGone) ending.abort()
  })
  // The base only completes the relative address; an address that cannot be parsed leads nowhere.
  const url = URL.canParse(request.url ?? '', 'http://engine')
    ? new URL(request.url ?? '', 'http://engine')
    : new URL('http://engine/invalid-address')

  const sendText = (status: number, contentType: string, text: string, headers = {}) => {
    response.writeHead(status, {
      ...headers,
      'content-type': contentType,
      'content-length': Buffer.byteLength(text),
    })
    response.end(text)
  }
  const sendJson = (status: number, value: unknown, headers = {}) =>
    sendText(status, 'application/json', JSON.stringify(value), headers)

  return {
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    arrivedMs: performance.now(),
    signal: ending.signal,
    stop: () => ending.abort(),
    clientIsGone: () => clientIsGone,
    header: (name) => {
      const value = request.headers[name]
      return Array.isArray(value) ? value[0] : value
    },
    readBody: (maxBytes) => readBody(request, maxBytes),
    sendJson,
    sendText: (status, contentType, text) => sendText(status, contentType, text),
    sendError: ({ status, error }) => sendJson(status, { error }),
    sendEvents(events) {
      if (!response.headersSent) {
        response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
      }
      if (events.length > 0) response.write(events.map(encodeEvent).join(''))
    },
    endEvents: () => {
      response.end()
    },
    hasBegunAnswer: () => response.headersSent,
  }
}

function encodeEvent({ name, data }: ServerEvent): string {
  const nameLine = name === undefined ? '' : `event: ${name}\n`
  return `${nameLine}data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`
}

function readBody(request: IncomingMessage, maxBytes: number): Promise<BodyOutcome> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      // What comes after the limit is read and dropped, so that the client gets to read its answer.
      if (bytes > maxBytes) {
        chunks.length = 0
        resolve({ kind: 'too-large' })
      } else {
        chunks.push(chunk)
      }
    })
    request.once('end', () => resolve({ kind: 'read', text: Buffer.concat(chunks).toString() }))
    request.once('error', () => resolve({ kind: 'aborted' }))
    request.once('close', () => resolve({ kind: 'aborted' }))
  })
}
