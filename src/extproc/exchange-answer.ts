import {
  type ExchangeEffect,
  type ExchangeInput,
  type ExchangeState,
  type ExchangeStep,
  goOn,
  letDown,
  step,
} from './exchange-state.ts'

type Observing = Extract<ExchangeState, { kind: 'observing' }>
type Part<Kind extends string> = Extract<ExchangeInput, { kind: Kind }>

/** A part of an answer that somebody wants to be told of. It goes on first, unchanged but for the observer's headers, and is told then. */
export const onAnswer = (
  state: Observing,
  part: Part<'response-headers' | 'response-body' | 'response-trailers'>,
): ExchangeStep => {
  switch (part.kind) {
    case 'response-headers':
      return state.next === 'head' ? onHead(state, part) : step(state, goOn(part.kind))
    case 'response-body':
      return state.next === 'head' ? headless(state, part.kind) : onChunk(state, part)
    case 'response-trailers':
      return state.next === 'head' ? headless(state, part.kind) : step(decided, goOn(part.kind), whole(state))
  }
}

const decided: ExchangeState = { kind: 'decided' }

const whole = ({ observer }: Observing): ExchangeEffect => ({ kind: 'observe-end', observer, how: 'complete' })

const onHead = (state: Observing, { headers, endOfStream }: Part<'response-headers'>): ExchangeStep => {
  const { observer } = state
  const changes = { setHeaders: observer.setHeaders, metadata: {} }
  const effects: readonly ExchangeEffect[] = [
    { kind: 'reply', reply: { kind: 'proceed', phase: 'response-headers', changes } },
    { kind: 'observe-head', observer, headers },
  ]
  return endOfStream ? step(decided, ...effects, whole(state)) : step({ ...state, next: 'body' }, ...effects)
}

const onChunk = (state: Observing, { body, endOfStream }: Part<'response-body'>): ExchangeStep => {
  const effects: readonly ExchangeEffect[] = [
    goOn('response-body'),
    { kind: 'observe-chunk', observer: state.observer, bytes: body },
  ]
  return endOfStream ? step(decided, ...effects, whole(state)) : step(state, ...effects)
}

/** An answer of which nobody told the headers says nothing. */
const headless = (state: Observing, phase: 'response-body' | 'response-trailers'): ExchangeStep =>
  step(decided, goOn(phase), ...letDown(state.observer))
