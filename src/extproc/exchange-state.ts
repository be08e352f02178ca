import type { ResponseObserver } from '../context/context-cache-manager.ts'
import type { CollectedBody } from './collected-body.ts'
import type { HeaderLookup } from './header-lookup.ts'
import type { AnswerMode, BodyMode, ExtProcEvent, Phase, Reply } from './messages.ts'
import type { DecideOnBody, Verdict } from './verdict.ts'

type RequestHeaders = Extract<ExtProcEvent, { kind: 'request-headers' }>

/** A message after the headers that Envoy sent while a verdict was awaited; its reply waits until the verdict is out. */
export type HeldPhase = 'request-body' | 'request-trailers'

/** Where one stream stands. */
export type ExchangeState =
  /** Nothing of the request was told yet. */
  | { readonly kind: 'fresh' }
  /** The verdict on the headers is awaited; their reply is owed. */
  | {
      readonly kind: 'deciding-on-headers'
      readonly endOfStream: boolean
      readonly bodyMode: BodyMode
      readonly answerMode: AnswerMode
      readonly extended: boolean
      readonly body: CollectedBody
      readonly bodyComplete: boolean
      readonly held: readonly HeldPhase[]
    }
  /** The body is needed and has not come whole. No reply is owed. */
  | {
      readonly kind: 'collecting'
      readonly bodyMode: BodyMode
      readonly answerMode: AnswerMode
      readonly decide: DecideOnBody
      readonly body: CollectedBody
    }
  /** The verdict on the whole request is awaited; the reply to phase `on` is owed. */
  | {
      readonly kind: 'deciding-on-body'
      readonly on: 'request-headers' | HeldPhase
      readonly answerMode: AnswerMode
      readonly extended: boolean
      readonly held: readonly HeldPhase[]
    }
  /** The verdict is out and the request goes on: whatever else is told goes on too. */
  | { readonly kind: 'decided' }
  /** The same, and somebody wants to be told of the answer. `next`: what of it comes next. */
  | { readonly kind: 'observing'; readonly observer: ResponseObserver; readonly next: 'head' | 'body' }
  /** Envoy answers the client by itself, without or before a verdict. */
  | { readonly kind: 'overtaken' }
  /** The last reply was given, or none can be. `ended`: our side is closed too. */
  | { readonly kind: 'over'; readonly ended: boolean }

/** What happens to a stream. */
export type ExchangeInput =
  | ExtProcEvent
  /** The awaited verdict. */
  | { readonly kind: 'verdict'; readonly verdict: Verdict }
  /** Whoever decides asks for more time. */
  | { readonly kind: 'extend'; readonly milliseconds: number }
  /** The observer need not be told the rest of the answer. */
  | { readonly kind: 'enough' }
  /** Envoy sends nothing more: it is done with this request, or its client is. */
  | { readonly kind: 'half-closed' }
  /** The stream is gone. */
  | { readonly kind: 'closed' }

/** What is to be done, in this order. */
export type ExchangeEffect =
  | { readonly kind: 'decide-on-headers'; readonly request: RequestHeaders }
  | { readonly kind: 'decide-on-body'; readonly decide: DecideOnBody; readonly body: Buffer }
  /** Nobody waits for the verdict any more. */
  | { readonly kind: 'abort' }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'observe-head'; readonly observer: ResponseObserver; readonly headers: HeaderLookup }
  | { readonly kind: 'observe-chunk'; readonly observer: ResponseObserver; readonly bytes: Buffer }
  /** The last word to an observer; each gets exactly one. */
  | { readonly kind: 'observe-end'; readonly observer: ResponseObserver; readonly how: 'complete' | 'broken' }
  /** Something is wrong that an operator should know; the client gets its answer by another effect. */
  | { readonly kind: 'fault'; readonly reason: string }
  /** Close our side: `ok` only where no reply is owed, for Envoy lets a request pass when a stream ends well. */
  | { readonly kind: 'end'; readonly status: 'ok' | 'cancelled' | 'internal' }

/** One step of the machine. */
export interface ExchangeStep {
  readonly state: ExchangeState
  readonly effects: readonly ExchangeEffect[]
}

/** Bounds of one exchange. */
export interface ExchangeLimits {
  /** A longer request body is answered 413. */
  readonly maxBodyBytes: number
  /** Whether a stream ends with its last reply, though Envoy has not ended its side and would do so by itself. */
  readonly endsFirst: boolean
}

/** Goes on to `state`, with these effects. */
export const step = (state: ExchangeState, ...effects: readonly ExchangeEffect[]): ExchangeStep => ({ state, effects })

/** The effect that lets a phase go on unchanged. */
export const goOn = (phase: Phase): ExchangeEffect => ({ kind: 'reply', reply: { kind: 'continue', phase } })

/** The last word to an observer whose answer is not told to its end, if there is one. */
export const letDown = (observer: ResponseObserver | undefined): readonly ExchangeEffect[] =>
  observer === undefined ? [] : [{ kind: 'observe-end', observer, how: 'broken' }]
