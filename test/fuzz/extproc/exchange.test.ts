import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ResponseObserver } from '../../../src/context/context-cache-manager.ts'
import type { Reply } from '../../../src/extproc/codec.ts'
import {
  advance,
  type ExchangeEffect,
  type ExchangeInput,
  type ExchangeState,
  initialExchange,
} from '../../../src/extproc/exchange.ts'
import { maxBodyBytes } from '../../unit/extproc/exchange-script.ts'
import { anyStory } from './exchange-arbitraries.ts'

/** Everything that happened, in order: each input followed by its effects. */
type Trace = readonly (
  | { readonly input: ExchangeInput }
  | { readonly effect: ExchangeEffect; readonly cause: ExchangeInput }
)[]

const trace = (inputs: readonly ExchangeInput[]): { readonly trace: Trace; readonly state: ExchangeState } => {
  let state: ExchangeState = initialExchange
  const steps = inputs.flatMap((input): Trace => {
    const step = advance(state, input, maxBodyBytes)
    state = step.state
    return [{ input }, ...step.effects.map((effect) => ({ effect, cause: input }))]
  })
  return { trace: steps, state }
}

const effectsOf = (steps: Trace): readonly ExchangeEffect[] =>
  steps.flatMap((at) => ('effect' in at ? [at.effect] : []))
const repliesOf = (steps: Trace): readonly Reply[] =>
  effectsOf(steps).flatMap((effect) => (effect.kind === 'reply' ? [effect.reply] : []))

const isForward = (reply: Reply): reply is Extract<Reply, { kind: 'decision' }> =>
  reply.kind === 'decision' && reply.decision.kind !== 'reject'
const isAnswer = (reply: Reply): boolean => reply.kind === 'decision' && reply.decision.kind === 'reject'

/** Phases still waiting for a reply after `steps`, each reply taken by the first of its phase. */
const waiting = (steps: Trace): readonly string[] => {
  const open: string[] = []
  for (const at of steps) {
    if ('input' in at) {
      if (at.input.kind.startsWith('re')) open.push(at.input.kind)
    } else if (at.effect.kind === 'reply' && 'phase' in at.effect.reply) {
      const index = open.indexOf(at.effect.reply.phase)
      if (index < 0) throw new Error(`reply to a ${at.effect.reply.phase} that nobody sent`)
      open.splice(index, 1)
    }
  }
  return open
}

const check = (property: (steps: Trace, state: ExchangeState, inputs: readonly ExchangeInput[]) => void): void =>
  fc.assert(
    fc.property(anyStory, (inputs) => {
      const { trace: steps, state } = trace(inputs)
      property(steps, state, inputs)
    }),
    { numRuns: 3000 },
  )

test('there is never a reply without a message, and requests wait only while something is still to come', () => {
  check((steps, state) => {
    const open = waiting(steps).filter((phase) => phase.startsWith('request'))
    const settled = state.kind === 'decided' || state.kind === 'collecting'
    expect(settled ? open : []).toEqual([])
  })
})

test('every response phase that is answered is answered at once', () => {
  check((steps, state) => {
    const open = waiting(steps).filter((phase) => phase.startsWith('response'))
    expect(state.kind === 'over' ? [] : open).toEqual([])
  })
})

test('there is one end at most, one answer at most, and nothing after either but the end', () => {
  check((steps) => {
    const effects = effectsOf(steps)
    const answers = effects.findIndex((effect) => effect.kind === 'reply' && isAnswer(effect.reply))
    const end = effects.findIndex((effect) => effect.kind === 'end')
    expect(effects.filter((effect) => effect.kind === 'end').length).toBeLessThanOrEqual(1)
    // An observer that comes too late is still let down.
    const isMore = ({ kind }: ExchangeEffect): boolean => kind !== 'observe_end'
    expect(end < 0 ? [] : effects.slice(end + 1).filter(isMore)).toEqual([])
    expect(
      answers < 0 ? [] : effects.slice(answers + 1).filter((effect) => isMore(effect) && effect.kind !== 'end'),
    ).toEqual([])
  })
})

test('a stream ends well only after its peer did, or when nothing more is wanted, and never while anything waits', () => {
  check((steps) => {
    const end = steps.findIndex((at) => 'effect' in at && at.effect.kind === 'end' && at.effect.status === 'ok')
    const before = end < 0 ? [] : steps.slice(0, end)
    const last = steps[end]
    const cause = last !== undefined && 'cause' in last ? last.cause : undefined
    const proceeded = repliesOf(before).some(isForward)
    const byVerdict = cause?.kind === 'decision' && proceeded
    const byObserver = cause?.kind === 'enough' && proceeded
    const answered = repliesOf(before).some(isAnswer)
    const overtaken = before.some((at) => 'input' in at && at.input.kind.startsWith('response'))
    expect(last === undefined || cause?.kind === 'half_closed' || byVerdict || byObserver).toBe(true)
    expect(answered || overtaken ? [] : waiting(before)).toEqual([])
  })
})

test('a request goes on, unless to have its body told, only by a verdict that says so', () => {
  check((steps) => {
    for (const [index, at] of steps.entries()) {
      if (!('effect' in at) || at.effect.kind !== 'reply') continue
      const { reply } = at.effect
      const sofar = steps.slice(0, index)
      const proceeded = repliesOf(sofar).some(isForward)
      const asksForBody = sofar.some(
        (before) => 'input' in before && before.input.kind === 'decision' && before.input.decision.kind === 'need-body',
      )
      const allowed = reply.kind !== 'continue' || reply.phase.startsWith('response') || proceeded || asksForBody
      expect(allowed).toBe(true)
    }
  })
})

test('a whole body is never let on before the verdict on it', () => {
  check((steps, _state, inputs) => {
    const buffered = inputs.find((input) => input.kind === 'request_headers')?.bodyMode === 'buffered'
    const firstReplyToBody = repliesOf(steps).find((reply) => 'phase' in reply && reply.phase === 'request_body')
    const proceededEarlier = repliesOf(steps).some((reply) => isForward(reply) && reply.phase === 'request_headers')
    const wrong = buffered && !proceededEarlier && firstReplyToBody?.kind === 'continue'
    expect(wrong).toBe(false)
  })
})

const observersOf = (inputs: readonly ExchangeInput[]): readonly ResponseObserver[] =>
  inputs.flatMap((input) =>
    input.kind === 'decision' && input.decision.kind === 'passthrough' && input.decision.observer !== undefined
      ? [input.decision.observer]
      : [],
  )

test('every observer is told one head at most, then pieces, then one last word, and nothing after it', () => {
  fc.assert(
    fc.property(anyStory, (story) => {
      const inputs = [...story, { kind: 'closed' as const }]
      const effects = effectsOf(trace(inputs).trace)
      for (const observer of observersOf(inputs)) {
        const told = effects.flatMap((effect) =>
          'observer' in effect && effect.observer === observer ? [effect.kind] : [],
        )
        expect(told.join(' ')).toMatch(/^(observe_head (observe_chunk )*)?observe_end$/)
      }
    }),
    { numRuns: 3000 },
  )
})

const endsAnswer = (input: ExchangeInput): boolean =>
  input.kind === 'response_trailers' ||
  ((input.kind === 'response_headers' || input.kind === 'response_body') && input.endOfStream)

test('an observer is told each piece after its reply, and that an answer was whole only if it was', () => {
  check((steps) => {
    for (const [index, at] of steps.entries()) {
      const effect = 'effect' in at ? at.effect : undefined
      const isPiece = effect?.kind === 'observe_head' || effect?.kind === 'observe_chunk'
      const before = steps[index - 1]
      const replied = before !== undefined && 'effect' in before && before.effect.kind === 'reply'
      const isWhole = effect?.kind === 'observe_end' && effect.how === 'complete'
      expect(isPiece ? replied : true).toBe(true)
      expect(isWhole && 'cause' in at ? endsAnswer(at.cause) : true).toBe(true)
    }
  })
})

test('more time is asked for once per decision, and an aborted decision gets no reply', () => {
  check((steps) => {
    const effects = effectsOf(steps)
    const decisions = effects.filter(({ kind }) => kind === 'decide_on_headers' || kind === 'decide_on_body').length
    const abort = effects.findIndex(({ kind }) => kind === 'abort')
    const after = abort < 0 ? [] : effects.slice(abort + 1)
    expect(repliesOf(steps).filter(({ kind }) => kind === 'extend').length).toBeLessThanOrEqual(decisions)
    expect(after.filter((effect) => effect.kind === 'reply' && isForward(effect.reply))).toEqual([])
  })
})
