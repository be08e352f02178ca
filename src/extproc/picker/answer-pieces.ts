import type { Reply } from '../codec.ts'
import type { GrpcStream, StreamStatus } from '../grpc-stream.ts'
import { BodySender } from './body-sender.ts'
import type { PassingAnswer } from './passing-answer.ts'

/** A piece of an answer's body. `hasTrailers`: it is the end of the body, behind which trailers follow. */
export interface AnswerPiece {
  readonly body: Buffer
  readonly endOfStream: boolean
  readonly hasTrailers?: boolean
}

const failed: StreamStatus = { code: 'internal', message: 'the stream cannot continue' }

/** Sends the body of an answer on, piece by piece: unchanged, rewritten, or replaced by another one. */
export class AnswerPieces {
  readonly #stream: GrpcStream<Reply>
  readonly #body: BodySender
  readonly #fault: (error: unknown) => void
  #ownBody: Buffer | undefined
  /** Settles when the pieces are sent that are being rewritten. Undefined: none is. */
  #rewriting: Promise<void> | undefined

  constructor(stream: GrpcStream<Reply>, fault: (error: unknown) => void) {
    this.#stream = stream
    this.#body = new BodySender(stream, 'response_body')
    this.#fault = fault
  }

  /** `body` goes on instead of the one that comes. */
  replaceBy(body: Buffer | undefined): void {
    this.#ownBody = body
  }

  flush(): void {
    this.#body.flush()
  }

  /** The next piece. `answer` undefined: nobody rewrites it. It ends with its last piece. */
  pass(piece: AnswerPiece, answer: PassingAnswer | undefined): void {
    const { body, endOfStream } = piece
    if (this.#rewriting !== undefined) {
      const before = this.#rewriting
      this.#follow(
        before.then(async () => (await answer?.rewritten(body, endOfStream)) ?? body),
        piece,
        answer,
      )
      return
    }
    const rewritten = answer?.rewritten(body, endOfStream) ?? body
    if (Buffer.isBuffer(rewritten)) this.#send({ ...piece, body: rewritten }, answer)
    else this.#follow(rewritten, piece, answer)
  }

  #follow(rewritten: Promise<Buffer>, piece: AnswerPiece, answer: PassingAnswer | undefined): void {
    const following = rewritten
      .then((body) => this.#send({ ...piece, body }, answer))
      .catch((thrown: unknown) => {
        this.#fault(thrown)
        this.#stream.end(failed)
      })
      .then(() => {
        if (this.#rewriting === following) this.#rewriting = undefined
      })
    this.#rewriting = following
  }

  #send({ body, endOfStream, hasTrailers = false }: AnswerPiece, answer: PassingAnswer | undefined): void {
    const isLast = endOfStream && !hasTrailers
    if (this.#ownBody === undefined) this.#body.add(body, isLast)
    else if (isLast) this.#body.add(this.#ownBody, true)
    if (hasTrailers) {
      this.#body.flush()
      this.#stream.send({ kind: 'continue', phase: 'response_trailers' })
    }
    if (endOfStream) answer?.end('complete')
  }
}
