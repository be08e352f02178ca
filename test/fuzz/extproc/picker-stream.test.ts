import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Decision, HeadersDecision } from '../../../src/context/context-cache-manager.ts'
import type { ExtProcEvent, Reply } from '../../../src/extproc/codec.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { createBodySplicer } from '../../../src/openai/splice-body.ts'
import { createLatch } from '../../support/latch.ts'
import { openStream, requestHeaders, type StreamHarness } from '../../unit/extproc/stream-harness.ts'

const maxBodyBytes = 200
/** Of all streams, one after the other. */
const bodyMemory = { maxBytes: 2000, heldBytes: 0 }
const splice = '"id_slot":1'

const forward: HeadersDecision = {
  kind: 'forward',
  destinations: ['10.0.0.1:8000'],
  path: undefined,
  requestHeaders: {},
  splice,
  expectModel: undefined,
  responseHeaders: { 'x-context-cache': 'hit' },
  ticket: 't',
}
/** Holds back what it gets until the next piece, and takes its time with every other one. */
const rewritten = (): HeadersDecision => {
  let held = ''
  let number = 0
  return {
    ...forward,
    body: Buffer.from('{"new":true}'),
    rewriter: {
      head: () => 'rewrite',
      chunk: (bytes, isLast) => {
        const out = Buffer.from(`${held}${isLast ? bytes.toString() : ''}`.toUpperCase())
        held = bytes.toString()
        number += 1
        return number % 2 === 0 ? nextTurn(out) : out
      },
      end: () => {},
    },
  }
}
const decisions: Readonly<Record<string, HeadersDecision>> = {
  forward,
  unchanged: { ...forward, splice: undefined },
  passthrough: { kind: 'passthrough', destinations: ['10.0.0.1:8000'] },
  reject: { kind: 'reject', error: new GatewayError('session_not_found') },
  'whole body': { kind: 'need-body', decide: async () => forward },
  'beginning of the body': { kind: 'need-body', prefixBytes: 5, decide: async () => forward },
}

/** What happens to a stream; `decide`: the pending decision is there. */
type Step = ExtProcEvent | { readonly kind: 'decide' } | { readonly kind: 'half close' } | { readonly kind: 'close' }

interface Story {
  readonly decision: string
  readonly body: readonly string[]
  readonly steps: readonly Step[]
}

const piecesOf = (texts: readonly string[], kind: 'request_body' | 'response_body', last: boolean): readonly Step[] =>
  texts.map((text, index) => ({ kind, body: Buffer.from(text), endOfStream: last && index === texts.length - 1 }))

const texts = (all: fc.Arbitrary<string>) => fc.array(all, { minLength: 1, maxLength: 6 })
const anyBody = fc.oneof(
  { weight: 3, arbitrary: texts(fc.string({ maxLength: 9 })).map((inner) => ['{', ...inner, '} ']) },
  { weight: 1, arbitrary: texts(fc.string({ maxLength: 60 })) },
)

/** A request and its answer in Envoy's order, with the decision at any place, which then end at any place. */
const anyStory: fc.Arbitrary<Story> = fc
  .record({
    decision: fc.constantFrom(...Object.keys(decisions), 'rewritten'),
    body: anyBody,
    answer: texts(fc.constantFrom('{', '"usage":{"prompt_tokens":1}', '}')),
    decideAt: fc.nat(9),
    isTwice: fc.boolean(),
    requestTrailers: fc.boolean(),
    answerTrailers: fc.boolean(),
    length: fc.nat(20),
    end: fc.constantFrom<Step['kind'][]>(['half close', 'close'], ['close']),
  })
  .map((draw) => {
    const request = piecesOf(draw.body, 'request_body', !draw.requestTrailers)
    const twice = draw.isTwice && !draw.requestTrailers ? request.slice(-1) : []
    const end: readonly Step[] = draw.requestTrailers ? [{ kind: 'request_trailers' }] : twice
    const headers = (name: string) => (name === ':status' ? ['200'] : [])
    const steps: Step[] = [
      ...request,
      ...end,
      { kind: 'response_headers', headers, endOfStream: false },
      ...piecesOf(draw.answer, 'response_body', !draw.answerTrailers),
      ...(draw.answerTrailers ? [{ kind: 'response_trailers' } as const] : []),
    ]
    steps.splice(draw.decideAt, 0, { kind: 'decide' })
    const first = requestHeaders({}, { bodyMode: 'full_duplex_streamed', responseBodySent: true })
    return {
      decision: draw.decision,
      body: draw.body,
      steps: [first, ...steps.slice(0, draw.length), ...draw.end.map((kind): Step => ({ kind }) as Step)],
    }
  })

const play = async ({ decision, steps }: Story): Promise<StreamHarness> => {
  const decided = createLatch()
  const stream = openStream(
    async () => {
      await decided.opened
      if (decision === 'rewritten') return { kind: 'need-body', decide: async () => rewritten() as Decision }
      return decisions[decision] ?? forward
    },
    { maxBodyBytes, bodyMemory },
  )
  for (const step of steps) {
    if (step.kind === 'decide') decided.open()
    else if (step.kind === 'half close') stream.receiver.halfClosed()
    else if (step.kind === 'close') stream.receiver.closed()
    else stream.receiver.message(step)
    await nextTurn()
  }
  decided.open()
  await nextTurn()
  return stream
}

type Piece = Extract<Reply, { kind: 'body' }>
const pieces = ({ sent }: StreamHarness, phase: Piece['phase']): readonly Piece[] =>
  sent.filter((reply): reply is Piece => reply.kind === 'body' && reply.phase === phase)
const textOf = (parts: readonly { readonly body: Buffer }[]): string =>
  Buffer.concat(parts.map(({ body }) => body)).toString()

/** The whole body as it goes on; undefined: it is refused. */
const splicedOf = (body: readonly string[]): string | undefined => {
  const splicer = createBodySplicer({ splice, maxBytes: maxBodyBytes })
  try {
    return Buffer.concat([splicer.piece(Buffer.from(body.join(''))), splicer.end()]).toString()
  } catch {
    return undefined
  }
}

const received = ({ steps }: Story, kind: 'request_body' | 'response_body') =>
  steps.filter((step): step is Extract<ExtProcEvent, { kind: typeof kind }> => step.kind === kind)

const rules: Readonly<Record<string, (story: Story, stream: StreamHarness) => boolean>> = {
  'the request goes on only after its decision': (_story, stream) => {
    const { sent } = stream
    const head = sent.findIndex((reply) => reply.kind === 'continue' && reply.phase === 'request_headers')
    const first = sent.findIndex((reply) => reply.kind === 'body' && reply.phase === 'request_body')
    return first === -1 || (head !== -1 && head < first)
  },
  'what goes on of a body is the beginning of the spliced one, or all of it, with one end': (story, stream) => {
    const parts = pieces(stream, 'request_body')
    const out = textOf(parts)
    const isSpliced = !['unchanged', 'passthrough'].includes(story.decision)
    const body = story.decision === 'rewritten' ? ['{"new":true}'] : story.body
    const whole = isSpliced ? splicedOf(body) : body.join('')
    const ends = parts.filter(({ endOfStream }) => endOfStream).length
    if (ends > 1 || (ends === 1 && parts.at(-1)?.endOfStream !== true)) return false
    if (whole === undefined) return !out.includes(splice)
    return ends === 1 ? out === whole || out === '' || !out.endsWith('}') : whole.startsWith(out)
  },
  'an answer passes unchanged, or as far as it came, as it is rewritten': (story, stream) => {
    const [out, came] = [pieces(stream, 'response_body'), received(story, 'response_body')]
    const head = stream.sent.some((reply) => reply.kind === 'continue' && reply.phase === 'request_headers')
    if (story.decision !== 'rewritten' || !head) return textOf(out) === textOf(came)
    const isWhole = came.at(-1)?.endOfStream === true
    const whole = textOf(came).toUpperCase()
    return isWhole ? textOf(out) === whole && out.at(-1)?.endOfStream === true : whole.startsWith(textOf(out))
  },
  'a turn that was decided ends once, and counts only with the whole answer': (story, stream) => {
    const isTurn = !['passthrough', 'reject'].includes(story.decision)
    const head = stream.sent.some((reply) => reply.kind === 'continue' && reply.phase === 'request_headers')
    const isWhole = story.steps.some(
      (step) => step.kind === 'response_trailers' || (step.kind === 'response_body' && step.endOfStream),
    )
    const [turn, ...others] = stream.turnEnds
    if (others.length > 0 || (!isTurn && turn !== undefined)) return false
    return isTurn && head ? turn !== undefined && (!turn.complete || isWhole) : turn?.complete !== true
  },
  'the gateway answers at most once, and nothing of the request follows': ({ decision }, { sent }) => {
    const answered = sent.findIndex(({ kind }) => kind === 'decision')
    const isRequest = (reply: Reply): boolean => 'phase' in reply && reply.phase.startsWith('request')
    return answered === -1 ? true : decision !== '' && !sent.slice(answered + 1).some(isRequest)
  },
  'the stream never ends well before a decision': (story, { sent, ends }) => {
    const isDecided = sent.some((reply) => 'phase' in reply && reply.phase === 'request_headers')
    const isOvertaken = story.steps.some(({ kind }) => kind === 'response_headers')
    return ends.every(({ code }) => code !== 'ok' || isDecided || isOvertaken)
  },
  'nothing of a body is held after its stream': () => bodyMemory.heldBytes === 0,
  'nothing is a fault': (_story, { faults }) => faults.length === 0,
}

test('any request and answer, decided at any place and ended at any place, keeps every rule', async () => {
  await fc.assert(
    fc.asyncProperty(anyStory, async (story) => {
      const stream = await play(story)
      expect(Object.keys(rules).filter((rule) => rules[rule]?.(story, stream) !== true)).toEqual([])
    }),
    { numRuns: 1500 },
  )
})
