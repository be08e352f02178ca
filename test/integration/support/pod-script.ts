import type { IncomingHttpHeaders, ServerResponse } from 'node:http'

/** A request that reached a scripted pod, with its whole body. */
export interface RecordedRequest {
  readonly method: string
  /** With the query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, unchanged. */
  readonly rawHeaders: readonly string[]
  readonly body: string
  /** The bytes of the body. */
  readonly bytes: Buffer
}

/** The pod's side of one request. */
export interface PodReply {
  /** Node's own object, for what the other members do not do. */
  readonly response: ServerResponse
  json(status: number, value: unknown, headers?: Readonly<Record<string, string>>): void
  /** Writes a piece of an SSE response, with status 200 before the first. */
  write(piece: string): void
  /** Ends the response. */
  end(): void
  /** Breaks the connection (RST). */
  reset(): void
  /** Settles when the response has ended; `false`: the client left before. */
  readonly finished: Promise<boolean>
}

/** What a pod does with one inference request. */
export type PodScript = (request: RecordedRequest, reply: PodReply) => void | Promise<void>
