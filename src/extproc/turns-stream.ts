import type { ContextCacheManager, Decision, GatewayRequest, RequestScope } from '../context/context-cache-manager.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { GrpcStream, StreamHandler, StreamMethod } from './grpc-stream.ts'
import type { HealthState } from './health.ts'
import { decideSafely, type ProcessHooks } from './process-stream.ts'
import { outcomeOf } from './replies.ts'
import {
  createTurnsCodec,
  type TurnDecision,
  type TurnsReply,
  type TurnsRequest,
  toTurnDecision,
} from './turn-messages.ts'

/** More than the accelerator lets wait on all its streams. */
const maxPendingTurns = 65_536

/** The accelerator collects asks until it has a reply, so that one slow decision must not delay it. */
const emptyReplyAfterMilliseconds = 2

export interface TurnsOptions {
  readonly service: Pick<ContextCacheManager, 'onHeaders'>
  readonly hooks: ProcessHooks
  /** Streams are retired once this process no longer serves. */
  readonly health: Pick<HealthState, 'onChange'>
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** Where the accelerator (accelerator/README.md) asks about turns: many turns share one long call. */
export const createTurnsMethod = (options: TurnsOptions): StreamMethod<TurnsRequest, TurnsReply> => ({
  ...createTurnsCodec(),
  // A retired stream is closed by the accelerator, after its last decision.
  longLived: false,
  open: (stream) => new TurnsStream(stream, options),
})

/** One stream of a worker of Envoy. Decisions that are taken at once leave in one message. */
class TurnsStream implements StreamHandler<TurnsRequest> {
  readonly #stream: GrpcStream<TurnsReply>
  readonly #options: TurnsOptions
  /** Undecided turns. The controller of each aborts its decision. */
  readonly #pending = new Map<number, AbortController>()
  readonly #stopWatching: () => void
  #decisions: TurnDecision[] = []
  #flush: NodeJS.Immediate | undefined
  #emptyReply: NodeJS.Timeout | undefined

  constructor(stream: GrpcStream<TurnsReply>, options: TurnsOptions) {
    this.#stream = stream
    this.#options = options
    this.#stopWatching = options.health.onChange((serving) => {
      if (!serving) stream.send({ decisions: [], retire: true })
    })
  }

  message({ asks, cancels }: TurnsRequest): void {
    for (const { id, request } of asks) this.#ask(id, request)
    for (const id of cancels) this.#cancel(id)
    if (asks.length > 0) this.#emptyReply ??= setTimeout(() => this.#send(), emptyReplyAfterMilliseconds)
  }

  halfClosed(): void {
    this.#cancelAll()
    this.#stream.end({ code: 'ok' })
  }

  closed(): void {
    this.#stopWatching()
    this.#cancelAll()
    this.#clearTimers()
  }

  #ask(id: number, request: GatewayRequest): void {
    if (this.#pending.size >= maxPendingTurns || this.#pending.has(id)) {
      this.#stream.end({ code: 'invalid_argument', message: 'too many turns, or two with one id' })
      return
    }
    const turn = new AbortController()
    this.#pending.set(id, turn)
    this.#options.hooks.streamOpened()
    void this.#decide(id, turn, request)
  }

  /** At most one extension, then at most one decision; none after a cancel. */
  async #decide(id: number, turn: AbortController, request: GatewayRequest): Promise<void> {
    const { service, hooks, now } = this.#options
    const askedAtMs = now()
    const isPending = (): boolean => this.#pending.get(id) === turn
    let hasExtended = false
    const extendDeadline = (milliseconds: number): void => {
      if (!isPending() || hasExtended || !Number.isFinite(milliseconds) || milliseconds < 1) return
      hasExtended = true
      this.#add({ id, extend_milliseconds: Math.floor(milliseconds) })
    }
    const scope: RequestScope = { signal: turn.signal, extendDeadline }
    const first = await decideSafely(() => service.onHeaders(request, scope), hooks)
    const decision = first.kind === 'need-body' ? this.#withoutBody() : first
    if (isPending()) {
      this.#close(id)
      this.#add(this.#encode(id, decision))
      hooks.message('request_headers', now() - askedAtMs)
    }
  }

  #close(id: number): void {
    if (this.#pending.delete(id)) this.#options.hooks.streamClosed()
  }

  #withoutBody(): Decision {
    this.#options.hooks.fault(new Error('a decision needs the request body, which the accelerator does not send'))
    return { kind: 'reject', error: new GatewayError('internal_error') }
  }

  #encode(id: number, decision: Decision): TurnDecision {
    try {
      return toTurnDecision(id, outcomeOf(decision))
    } catch (thrown) {
      this.#options.hooks.fault(thrown)
      return toTurnDecision(id, outcomeOf({ kind: 'reject', error: GatewayError.from(thrown) }))
    }
  }

  #add(decision: TurnDecision): void {
    this.#decisions.push(decision)
    this.#flush ??= setImmediate(() => this.#send())
  }

  #send(): void {
    this.#clearTimers()
    const decisions = this.#decisions
    this.#decisions = []
    this.#stream.send({ decisions, retire: false })
  }

  #clearTimers(): void {
    clearImmediate(this.#flush)
    clearTimeout(this.#emptyReply)
    this.#flush = undefined
    this.#emptyReply = undefined
  }

  #cancel(id: number): void {
    const turn = this.#pending.get(id)
    this.#close(id)
    turn?.abort()
  }

  #cancelAll(): void {
    for (const id of this.#pending.keys()) this.#cancel(id)
  }
}
