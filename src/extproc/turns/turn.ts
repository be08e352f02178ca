import type { ContextCacheManager, RequestScope, ResponseObserver } from '../../context/context-cache-manager.ts'
import { GatewayError } from '../../openai/gateway-error.ts'
import { toGatewayRequest } from '../gateway-request.ts'
import type { Reply } from '../messages.ts'
import type { ProcessHooks } from '../process-hooks.ts'
import { rejection, type Verdict } from '../verdict.ts'
import { verdictOf } from '../verdict-of.ts'
import type { TurnRequest } from './turn-message.ts'

/** What all turns have in common. */
export interface TurnOptions {
  readonly service: Pick<ContextCacheManager, 'onHeaders'>
  readonly hooks: ProcessHooks
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** Where a turn came from. */
export interface TurnHome {
  reply(id: number, reply: Reply): void
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
    const first = await verdictOf(() => service.onHeaders(toGatewayRequest(request), this), hooks)
    const verdict = first.kind === 'need-body' ? await this.#withoutBody(request, first) : first
    if (this.#state === 'deciding') {
      this.#state = 'decided'
      this.#home.reply(this.#id, replyOf(verdict))
      hooks.message('request-headers', now() - askedMs)
      this.#home.over(this.#id)
      hooks.streamClosed()
    }
    if (verdict.kind === 'proceed' && verdict.observer !== undefined) this.#letDown(verdict.observer)
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
  async #withoutBody(request: TurnRequest, { decide }: Extract<Verdict, { kind: 'need-body' }>): Promise<Decided> {
    const { hooks } = this.#options
    if (request.endOfStream) {
      const verdict = await verdictOf(() => decide(Buffer.alloc(0), this), hooks)
      if (verdict.kind !== 'need-body') return verdict
    }
    hooks.fault(new Error('a request body is needed, which the filter for turns does not tell'))
    return rejection(new GatewayError('internal_error'))
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

type Decided = Exclude<Verdict, { kind: 'need-body' }>

const replyOf = (verdict: Decided): Reply =>
  verdict.kind === 'immediate' ? verdict : { kind: 'proceed', phase: 'request-headers', changes: verdict.changes }
