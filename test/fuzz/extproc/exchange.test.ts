import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ResponseObserver, ResponseRewriter } from '../../../src/context/context-cache-manager.ts'
import type { Reply } from '../../../src/extproc/codec.ts'
import {
  advance,
  type ExchangeEffect,
  type ExchangeInput,
  type ExchangeState,
  initialExchange,
} from '../../../src/extproc/exchange.ts'
import { closed, maxBodyBytes } from '../../unit/extproc/exchange-script.ts'
import { anyStory } from './exchange-arbitraries.ts'

/** Everything that happened, in order: each input followed by its effects. */
type Trace = readonly (
  | { readonly input: ExchangeInput; readonly effect?: never; readonly cause?: never }
  | { readonly input?: never; readonly effect: ExchangeEffect; readonly cause: ExchangeInput }
)[]

interface Run {
  readonly inputs: readonly ExchangeInput[]
  readonly trace: Trace
  readonly state: ExchangeState
}

const play = (inputs: readonly ExchangeInput[]): Run => {
  let state: ExchangeState = initialExchange
  const trace = inputs.flatMap((input): Trace => {
    const step = advance(state, input, maxBodyBytes)
    state = step.state
    return [{ input }, ...step.effects.map((effect) => ({ effect, cause: input }))]
  })
  return { inputs, trace, state }
}

const effectsOf = (trace: Trace): readonly ExchangeEffect[] =>
  trace.flatMap(({ effect }) => (effect === undefined ? [] : [effect]))
const repliesOf = (trace: Trace): readonly Reply[] =>
  effectsOf(trace).flatMap((effect) => (effect.kind === 'reply' ? [effect.reply] : []))
const isForward = (reply: Reply): boolean => reply.kind === 'decision' && reply.decision.kind !== 'reject'
const isRejection = (reply: Reply): boolean => reply.kind === 'decision' && reply.decision.kind === 'reject'
const isResponse = ({ input }: Trace[number]): boolean => input?.kind.startsWith('response') ?? false

/** Whose reply a rewriter is asked for. */
const rewritten: Readonly<Partial<Record<ExchangeEffect['kind'], string>>> = {
  rewrite_head: 'response_headers',
  rewrite_chunk: 'response_body',
  rewrite_trailers: 'response_trailers',
}

/** Phases that still wait for a reply after `trace`, each reply taken by the first of its phase. */
const waiting = (trace: Trace): readonly string[] => {
  const open: string[] = []
  for (const { input, effect } of trace) {
    if (input?.kind.startsWith('re')) open.push(input.kind)
    const replied = effect?.kind === 'reply' && 'phase' in effect.reply ? effect.reply.phase : undefined
    const phase = replied ?? (effect && rewritten[effect.kind])
    if (phase === undefined) continue
    const index = open.indexOf(phase)
    if (index < 0) throw new Error(`a reply to a ${phase} that was not sent`)
    open.splice(index, 1)
  }
  return open
}

const endsResponse = (input: ExchangeInput): boolean =>
  input.kind === 'response_trailers' ||
  ((input.kind === 'response_headers' || input.kind === 'response_body') && input.endOfStream)

const observersOf = (inputs: readonly ExchangeInput[]): readonly ResponseObserver[] =>
  inputs.flatMap((input) =>
    input.kind === 'decision' && input.decision.kind === 'passthrough' && input.decision.observer !== undefined
      ? [input.decision.observer]
      : [],
  )

const rewritersOf = (inputs: readonly ExchangeInput[]): readonly ResponseRewriter[] =>
  inputs.flatMap((input) =>
    input.kind === 'decision' && input.decision.kind === 'passthrough' && input.decision.rewriter !== undefined
      ? [input.decision.rewriter]
      : [],
  )

/** What holds for every stream. */
const rules: Readonly<Record<string, (run: Run) => boolean>> = {
  'a request waits for a reply only while a decision or a body is still to come': ({ trace, state }) =>
    (state.kind !== 'decided' && state.kind !== 'awaiting_body') ||
    !waiting(trace).some((phase) => phase.startsWith('request')),

  'a response phase gets its reply at once': ({ trace, state }) =>
    state.kind === 'over' || !waiting(trace).some((phase) => phase.startsWith('response')),

  'a stream ends once, and nothing follows but the end of an observer that came late': ({ trace }) => {
    const effects = effectsOf(trace)
    const end = effects.findIndex(({ kind }) => kind === 'end')
    return end < 0 || effects.slice(end + 1).every(({ kind }) => kind === 'observe_end' || kind === 'rewrite_end')
  },

  'a rejection is the last reply': ({ trace }) => {
    const effects = effectsOf(trace)
    const rejected = effects.findIndex((effect) => effect.kind === 'reply' && isRejection(effect.reply))
    const mayFollow = ['observe_end', 'rewrite_end', 'end']
    return rejected < 0 || effects.slice(rejected + 1).every(({ kind }) => mayFollow.includes(kind))
  },

  'a stream ends well only after a half close, or in a drain after its decision': ({ trace }) => {
    const end = trace.findIndex(({ effect }) => effect?.kind === 'end' && effect.status === 'ok')
    const cause = trace[end]?.cause?.kind
    const isDone = cause === 'drain' && repliesOf(trace.slice(0, end)).some(isForward)
    return end < 0 || cause === 'half_closed' || isDone
  },

  'a stream ends well only when nothing waits, was rejected, or was overtaken by the response': ({ trace }) => {
    const end = trace.findIndex(({ effect }) => effect?.kind === 'end' && effect.status === 'ok')
    const before = trace.slice(0, Math.max(0, end))
    return waiting(before).length === 0 || repliesOf(before).some(isRejection) || before.some(isResponse)
  },

  'a request continues only after a decision to forward it or to read its body': ({ trace }) =>
    trace.every(({ effect }, index) => {
      const reply = effect?.kind === 'reply' ? effect.reply : undefined
      if (reply?.kind !== 'continue' || reply.phase.startsWith('response')) return true
      const before = trace.slice(0, index)
      const needsBody = ({ input }: Trace[number]): boolean =>
        input?.kind === 'decision' && input.decision.kind === 'need-body'
      return repliesOf(before).some(isForward) || before.some(needsBody)
    }),

  'a buffered body does not continue before the decision': ({ trace, inputs }) => {
    const isBuffered = inputs.find((input) => input.kind === 'request_headers')?.bodyMode === 'buffered'
    const first = repliesOf(trace).find((reply) => 'phase' in reply && reply.phase === 'request_body')
    const wasForwarded = repliesOf(trace).some(
      (reply) => isForward(reply) && 'phase' in reply && reply.phase === 'request_headers',
    )
    return !isBuffered || wasForwarded || first?.kind !== 'continue'
  },

  'an observer receives at most one head, then pieces, then one end': ({ inputs }) => {
    const effects = effectsOf(play([...inputs, closed]).trace)
    return observersOf(inputs).every((observer) => {
      const received = effects.filter((effect) => 'observer' in effect && effect.observer === observer)
      return /^(observe_head (observe_chunk )*)?observe_end$/.test(received.map(({ kind }) => kind).join(' '))
    })
  },

  'a rewriter receives at most one head, then pieces, then one end': ({ inputs }) => {
    const effects = effectsOf(play([...inputs, closed]).trace)
    return rewritersOf(inputs).every((rewriter) => {
      const received = effects.filter((effect) => 'rewriter' in effect && effect.rewriter === rewriter)
      return /^(rewrite_head (rewrite_chunk )*(rewrite_trailers )?)?rewrite_end$/.test(
        received.map(({ kind }) => kind).join(' '),
      )
    })
  },

  'an observer receives a piece after its reply, and a complete end only from the last piece': ({ trace }) =>
    trace.every(({ effect, cause }, index) => {
      const isPiece = effect?.kind === 'observe_head' || effect?.kind === 'observe_chunk'
      const isComplete = effect?.kind === 'observe_end' && effect.how === 'complete'
      return (
        (!isPiece || trace[index - 1]?.effect?.kind === 'reply') &&
        (!isComplete || (cause !== undefined && endsResponse(cause)))
      )
    }),

  'more time is granted at most once per decision': ({ trace }) => {
    const isDecision = ({ kind }: ExchangeEffect): boolean => kind === 'decide_on_headers' || kind === 'decide_on_body'
    const extensions = repliesOf(trace).filter(({ kind }) => kind === 'extend')
    return extensions.length <= effectsOf(trace).filter(isDecision).length
  },

  'an aborted decision forwards nothing': ({ trace }) => {
    const abort = trace.findIndex(({ effect }) => effect?.kind === 'abort')
    return abort < 0 || !repliesOf(trace.slice(abort)).some(isForward)
  },
}

test('any sequence of messages and decisions keeps every rule of an exchange', () => {
  fc.assert(
    fc.property(anyStory, (inputs) => {
      const run = play(inputs)
      expect(Object.keys(rules).filter((rule) => rules[rule]?.(run) !== true)).toEqual([])
    }),
    { numRuns: 3000 },
  )
})
