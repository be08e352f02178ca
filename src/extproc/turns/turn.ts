import type {
  ContextCacheManager,
  Decision,
  HeadersDecision,
  RequestScope,
  ResponseObserver,
} from '../../context/context-cache-manager.ts'
import { GatewayError } from '../../openai/gateway-error.ts'
import { decideSafely, type ProcessHooks, toGatewayRequest } from '../process-stream.ts'
import { outcomeOf } from '../replies.ts'
import type { TurnRequest } from './turn-message.ts'
import type { TurnReply } from './turn-reply.ts'

/** What all turns have in common. */
export interface TurnOptions {
  readonly service: Pick<ContextCacheManager, 'onHeaders'>
  readonly hooks: ProcessHooks
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** Where a turn came from. */
export interface TurnHome {
  reply(id: number, reply: TurnReply): void
  /** Nothing more comes of the turn. */
  over(id: number): void
}

/** One request that the filter for turns asked about: one verdict, and ahead of it at most one word that it takes longer; none once it was left. */
export class Turn implements RequestScope {
  readonly #id: number
  readonly #home: TurnHome
  readonly #options: TurnOptions
  #abort: AbortController | undefined
  #state: 'deciding' | 'decided' | 'left' = 'deciding'
  #hasExtended = false

  constructor(id: number, home: TurnHome, options: TurnOptions) {
    this.#id = id
    this.#home = home
    this.#options = options
    options.hooks.streamOpened()
  }

  /** Decides, and replies. */
  async decide(request: TurnRequest): Promise<void> {
    const { service, hooks, now } = this.#options
    const askedMs = now()
    const first = await decideSafely(() => service.onHeaders(toGatewayRequest(request), this), hooks)
    const decision = first.kind === 'need-body' ? await this.#withoutBody(request, first) : first
    if (this.#state === 'deciding') {
      this.#state = 'decided'
      this.#home.reply(this.#id, outcomeOf(decision))
      hooks.message('request_headers', now() - askedMs)
      this.#home.over(this.#id)
      hooks.streamClosed()
    }
    if ('observer' in decision && decision.observer !== undefined) this.#letDown(decision.observer)
  }

  /** Nobody waits for the verdict any more. */
  leave(): void {
    this.#state = 'left'
    this.#abort?.abort()
    this.#options.hooks.streamClosed()
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.isAbandoned()) this.#abort.abort()
    return this.#abort.signal
  }

  isAbandoned(): boolean {
    return this.#state === 'left'
  }

  extendDeadline(milliseconds: number): void {
    if (this.#state !== 'deciding' || this.#hasExtended || !Number.isFinite(milliseconds) || milliseconds < 1) return
    this.#hasExtended = true
    this.#home.reply(this.#id, { kind: 'extend', milliseconds })
  }

  /** The filter keeps bodies to itself, so that only a request without one can be decided by it. */
  async #withoutBody(
    request: TurnRequest,
    { decide }: Extract<HeadersDecision, { kind: 'need-body' }>,
  ): Promise<Decision> {
    const { hooks } = this.#options
    if (request.endOfStream) {
      const decision = await decideSafely(() => decide(Buffer.alloc(0), this), hooks)
      if (decision.kind !== 'need-body') return decision
    }
    hooks.fault(new Error('a request body is needed, which the filter for turns does not tell'))
    return { kind: 'reject', error: new GatewayError('internal_error') }
  }

  /** The filter tells of no answers. */
  #letDown(observer: ResponseObserver): void {
    try {
      observer.end('broken')
    } catch (thrown) {
      this.#options.hooks.fault(thrown)
    }
  }
}
