import type { Reply } from '../codec.ts'
import type { GrpcStream } from '../grpc-stream.ts'

/** Longest piece of a body in one message. */
const maxPieceBytes = 62_000

/**
 * Sends a body in pieces. Those of one turn of the event loop leave together: Envoy sends the end of most bodies as an
 * empty piece right behind the last one, and a message costs more than its bytes.
 */
export class BodySender {
  readonly #stream: GrpcStream<Reply>
  readonly #phase: 'request_body' | 'response_body'
  #pieces: Buffer[] = []
  #isLast = false
  #flush: NodeJS.Immediate | undefined

  constructor(stream: GrpcStream<Reply>, phase: 'request_body' | 'response_body') {
    this.#stream = stream
    this.#phase = phase
  }

  add(piece: Buffer, isLast: boolean): void {
    if (piece.length > 0) this.#pieces.push(piece)
    this.#isLast ||= isLast
    this.#flush ??= setImmediate(() => this.flush())
  }

  /** Sends what is left before another message. */
  flush(): void {
    clearImmediate(this.#flush)
    this.#flush = undefined
    const [only] = this.#pieces
    const bytes = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces)
    const isLast = this.#isLast
    this.#pieces = []
    this.#isLast = false
    for (let at = 0; at < bytes.length || (at === 0 && isLast); at += maxPieceBytes) {
      const body = bytes.subarray(at, at + maxPieceBytes)
      const endOfStream = isLast && at + maxPieceBytes >= bytes.length
      this.#stream.send({ kind: 'body', phase: this.#phase, body, endOfStream })
    }
  }

  /** Drops what is left: another answer takes its place. */
  drop(): void {
    this.#pieces = []
    this.#isLast = false
  }
}
