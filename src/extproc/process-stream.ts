import type { ContextCacheManager, HeadersDecision, RequestScope } from '../context/context-cache-manager.ts'
import type { ExtProcCodec } from './codec.ts'
import { advance, initialExchange } from './exchange.ts'
import type { ExchangeEffect, ExchangeInput, ExchangeState } from './exchange-state.ts'
import { toGatewayRequest } from './gateway-request.ts'
import type { HeaderLookup } from './header-lookup.ts'
import type { ExtProcEvent, Reply } from './messages.ts'
import type { ProcessHooks } from './process-hooks.ts'
import { ReplyTimer, type ReplyTiming } from './reply-timer.ts'
import type { RpcCall, RpcMethod, RpcReceiver, RpcStatus } from './transport.ts'
import { verdictOf } from './verdict-of.ts'

/** What a stream needs to be served. */
export interface ProcessOptions {
  readonly service: Pick<ContextCacheManager, 'onHeaders'>
  readonly codec: ExtProcCodec
  /** A longer request body is answered 413. */
  readonly maxBodyBytes: number
  /** Whether a stream ends with its verdict where no more is to come, which saves both sides a message and a wake-up. */
  readonly endsFirst: boolean
  readonly hooks: ProcessHooks
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** The ExternalProcessor's only method: one call for each HTTP request. */
export const createProcessMethod = (options: ProcessOptions): RpcMethod<ExtProcEvent, Reply> => {
  const timing: ReplyTiming = {
    now: options.now,
    report: (phase, milliseconds) => options.hooks.message(phase, milliseconds),
  }
  return {
    path: options.codec.path,
    longLived: false,
    decode: (bytes) => options.codec.decode(bytes),
    encode: (reply) => options.codec.encode(reply),
    open: (call) => new ProcessStream(call, options, timing),
  }
}

/** One HTTP request in Envoy, from its headers to the last that Envoy tells of it. */
class ProcessStream implements RpcReceiver<ExtProcEvent>, RequestScope {
  readonly #call: RpcCall<Reply>
  readonly #options: ProcessOptions
  readonly #timer: ReplyTimer
  #state: ExchangeState = initialExchange
  #isAbandoned = false
  #abort: AbortController | undefined

  constructor(call: RpcCall<Reply>, options: ProcessOptions, timing: ReplyTiming) {
    this.#call = call
    this.#options = options
    this.#timer = new ReplyTimer(timing)
    options.hooks.streamOpened()
  }

  message(event: ExtProcEvent): void {
    if (event.kind !== 'unknown') this.#timer.received(event.kind)
    this.#take(event)
  }

  halfClosed(): void {
    this.#take({ kind: 'half-closed' })
  }

  closed(): void {
    this.#take({ kind: 'closed' })
    this.#options.hooks.streamClosed()
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#isAbandoned) this.#abort.abort()
    return this.#abort.signal
  }

  isAbandoned(): boolean {
    return this.#isAbandoned
  }

  extendDeadline(milliseconds: number): void {
    this.#take({ kind: 'extend', milliseconds })
  }

  #take(input: ExchangeInput): void {
    const next = advance(this.#state, input, this.#options)
    this.#state = next.state
    for (const effect of next.effects) this.#perform(effect)
  }

  #perform(effect: ExchangeEffect): void {
    switch (effect.kind) {
      case 'decide-on-headers':
        void this.#settle(() => this.#options.service.onHeaders(toGatewayRequest(effect.request), this))
        return
      case 'decide-on-body':
        void this.#settle(() => effect.decide(effect.body, this))
        return
      case 'abort':
        this.#isAbandoned = true
        this.#abort?.abort()
        return
      case 'reply':
        this.#call.send(effect.reply)
        this.#timer.sent(effect.reply)
        return
      case 'observe-head':
        this.#observe(() => effect.observer.head(statusOf(effect.headers), effect.headers))
        return
      case 'observe-chunk':
        this.#observe(() => effect.observer.chunk(effect.bytes))
        return
      case 'observe-end':
        this.#observe(() => {
          effect.observer.end(effect.how)
          return 'more'
        })
        return
      case 'fault':
        this.#options.hooks.fault(new Error(effect.reason))
        return
      case 'end':
        this.#call.end(endStatus[effect.status])
        return
    }
  }

  /** An observer that fails has seen enough; the answer does not suffer. */
  #observe(tell: () => 'more' | 'enough'): void {
    let wish: 'more' | 'enough' = 'enough'
    try {
      wish = tell()
    } catch (thrown) {
      this.#options.hooks.fault(thrown)
    }
    if (wish === 'enough') this.#take({ kind: 'enough' })
  }

  async #settle(decide: () => Promise<HeadersDecision>): Promise<void> {
    this.#take({ kind: 'verdict', verdict: await verdictOf(decide, this.#options.hooks) })
  }
}

/** 0 where Envoy tells none. */
const statusOf = (headers: HeaderLookup): number => Number(headers(':status')[0] ?? 0)

const endStatus: Readonly<Record<Extract<ExchangeEffect, { kind: 'end' }>['status'], RpcStatus>> = {
  ok: { code: 'ok' },
  cancelled: { code: 'cancelled', message: 'the request was given up before its answer' },
  internal: { code: 'internal', message: 'the stream cannot go on' },
}
