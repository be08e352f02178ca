import type { ContextService, DecisionScope, HeadersDecision } from '../context/context-service.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { ExtProcCodec } from './codec.ts'
import { advance, initialExchange } from './exchange.ts'
import type { ExchangeEffect, ExchangeInput } from './exchange-state.ts'
import { toGatewayRequest } from './gateway-request.ts'
import type { HeaderLookup } from './header-lookup.ts'
import type { ExtProcEvent, Reply } from './messages.ts'
import type { ProcessHooks } from './process-hooks.ts'
import { createReplyTimer } from './reply-timer.ts'
import type { RpcCall, RpcMethod, RpcReceiver, RpcStatus } from './transport.ts'
import { rejection, toVerdict, type Verdict } from './verdict.ts'

/** What a stream needs to be served. */
export interface ProcessOptions {
  readonly service: Pick<ContextService, 'onHeaders'>
  readonly codec: ExtProcCodec
  /** A longer request body is answered 413. */
  readonly maxBodyBytes: number
  readonly hooks: ProcessHooks
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** The ExternalProcessor's only method: one call for each HTTP request. */
export const createProcessMethod = (options: ProcessOptions): RpcMethod<ExtProcEvent, Reply> => ({
  path: options.codec.path,
  longLived: false,
  decode: (bytes) => options.codec.decode(bytes),
  encode: (reply) => options.codec.encode(reply),
  open: (call) => openStream(call, options),
})

const openStream = (call: RpcCall<Reply>, options: ProcessOptions): RpcReceiver<ExtProcEvent> => {
  const { service, hooks, maxBodyBytes } = options
  const timer = createReplyTimer(options.now, (phase, milliseconds) => hooks.message(phase, milliseconds))
  const abort = new AbortController()
  let isAbandoned = false
  let state = initialExchange

  const scope: DecisionScope = {
    get signal() {
      return abort.signal
    },
    isAbandoned: () => isAbandoned,
    extendDeadline: (milliseconds) => take({ kind: 'extend', milliseconds }),
  }

  const take = (input: ExchangeInput): void => {
    const next = advance(state, input, { maxBodyBytes })
    state = next.state
    for (const effect of next.effects) perform(effect)
  }

  const perform = (effect: ExchangeEffect): void => {
    switch (effect.kind) {
      case 'decide-on-headers':
        void settle(() => service.onHeaders(toGatewayRequest(effect.request), scope))
        return
      case 'decide-on-body':
        void settle(() => effect.decide(effect.body, scope))
        return
      case 'abort':
        isAbandoned = true
        abort.abort()
        return
      case 'reply':
        call.send(effect.reply)
        timer.sent(effect.reply)
        return
      case 'observe-head':
        observe(() => effect.observer.head(statusOf(effect.headers), effect.headers))
        return
      case 'observe-chunk':
        observe(() => effect.observer.chunk(effect.bytes))
        return
      case 'observe-end':
        observe(() => {
          effect.observer.end(effect.how)
          return 'more'
        })
        return
      case 'fault':
        hooks.fault(new Error(effect.reason))
        return
      case 'end':
        call.end(endStatus[effect.status])
        return
    }
  }

  /** An observer that fails has seen enough; the answer does not suffer. */
  const observe = (tell: () => 'more' | 'enough'): void => {
    let wish: 'more' | 'enough' = 'enough'
    try {
      wish = tell()
    } catch (thrown) {
      hooks.fault(thrown)
    }
    if (wish === 'enough') take({ kind: 'enough' })
  }

  const settle = async (decide: () => Promise<HeadersDecision>): Promise<void> => {
    const verdict = await verdictOf(decide, hooks)
    take({ kind: 'verdict', verdict })
  }

  hooks.streamOpened()
  return {
    message: (event) => {
      if (event.kind !== 'unknown') timer.received(event.kind)
      take(event)
    },
    halfClosed: () => take({ kind: 'half-closed' }),
    closed: () => {
      take({ kind: 'closed' })
      hooks.streamClosed()
    },
  }
}

/** 0 where Envoy tells none. */
const statusOf = (headers: HeaderLookup): number => Number(headers(':status')[0] ?? 0)

/** Whatever goes wrong while a decision is taken becomes a 500 for this client alone. */
const verdictOf = async (decide: () => Promise<HeadersDecision>, hooks: ProcessHooks): Promise<Verdict> => {
  try {
    return toVerdict(await decide())
  } catch (thrown) {
    hooks.fault(thrown)
    return rejection(GatewayError.from(thrown))
  }
}

const endStatus: Readonly<Record<Extract<ExchangeEffect, { kind: 'end' }>['status'], RpcStatus>> = {
  ok: { code: 'ok' },
  cancelled: { code: 'cancelled', message: 'the request was given up before its answer' },
  internal: { code: 'internal', message: 'the stream cannot go on' },
}
