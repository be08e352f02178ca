import type { GrpcStream, StreamHandler, StreamMethod } from '../grpc-stream.ts'
import type { HealthState } from '../health.ts'
import { Turn, type TurnHome, type TurnOptions } from './turn.ts'
import { decodeTurnMessage, type TurnMessage, type TurnRequest } from './turn-message.ts'
import { encodeTurnReply, retireReply, type TurnReply } from './turn-reply.ts'

/** More than Envoy's filter lets wait on all its streams. */
const maxWaitingTurns = 65_536

export interface TurnsOptions extends TurnOptions {
  /** Streams are told to go elsewhere once this process no longer serves. */
  readonly health: Pick<HealthState, 'onChange'>
}

/**
 * Where Envoy's filter for turns asks (docs/adr/0013): one long call on which each turn is a message, and so is its verdict. A stream for each request,
 * as ext_proc has it, costs Envoy more than the request itself.
 */
export const createTurnsMethod = (options: TurnsOptions): StreamMethod<TurnMessage, Buffer> => ({
  path: '/contextcache.v1.Turns/Decide',
  // The filter closes its streams once it is told to go elsewhere, and all verdicts are out.
  longLived: false,
  decode: decodeTurnMessage,
  encode: (reply) => reply,
  open: (call) => new TurnsStream(call, options),
})

/** One of a worker's streams. */
class TurnsStream implements StreamHandler<TurnMessage>, TurnHome {
  readonly #call: GrpcStream<Buffer>
  readonly #options: TurnsOptions
  readonly #waiting = new Map<number, Turn>()
  readonly #stopWatching: () => void

  constructor(call: GrpcStream<Buffer>, options: TurnsOptions) {
    this.#call = call
    this.#options = options
    this.#stopWatching = options.health.onChange((serving) => {
      if (!serving) call.send(retireReply)
    })
  }

  message(message: TurnMessage): void {
    switch (message.kind) {
      case 'ask':
        this.#ask(message.id, message.request)
        return
      case 'left':
        this.#waiting.get(message.id)?.leave()
        this.#waiting.delete(message.id)
        return
    }
  }

  halfClosed(): void {
    this.#leaveAll()
    this.#call.end({ code: 'ok' })
  }

  closed(): void {
    this.#stopWatching()
    this.#leaveAll()
  }

  reply(id: number, reply: TurnReply): void {
    this.#call.send(encodeTurnReply(id, reply))
  }

  over(id: number): void {
    this.#waiting.delete(id)
  }

  #ask(id: number, request: TurnRequest): void {
    if (this.#waiting.size >= maxWaitingTurns || this.#waiting.has(id)) {
      this.#call.end({ code: 'invalid_argument', message: 'too many turns, or two of one id' })
      return
    }
    const turn = new Turn(id, this, this.#options)
    this.#waiting.set(id, turn)
    void turn.decide(request)
  }

  #leaveAll(): void {
    for (const turn of this.#waiting.values()) turn.leave()
    this.#waiting.clear()
  }
}
