import fc from 'fast-check'
import type { BodyMode } from '../../../src/extproc/codec.ts'
import type { ExchangeInput } from '../../../src/extproc/exchange.ts'
import {
  bodilessResponse,
  closed,
  drain,
  enough,
  halfClosed,
  headers,
  headersWithResponse,
  lastResponseBody,
  needBody,
  observer,
  pass,
  reject,
  responseBody,
  responseHeaders,
  responseTrailers,
  trailers,
  unknown,
} from '../../unit/extproc/exchange-script.ts'

const bodyModes: readonly BodyMode[] = [
  'none',
  'streamed',
  'buffered',
  'buffered_partial',
  'full_duplex_streamed',
  'grpc',
  'unknown',
]

const anyHeaders = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constantFrom(...bodyModes), fc.boolean()).map(([mode, end]) => headers(mode, end)),
  },
  { weight: 2, arbitrary: fc.boolean().map(headersWithResponse) },
)

/** Bodies around the limit of 10 bytes of the stories. */
const anyBody: fc.Arbitrary<ExchangeInput> = fc.record({
  kind: fc.constant('request_body' as const),
  body: fc.integer({ min: 0, max: 11 }).map((bytes) => Buffer.alloc(bytes, 'x')),
  endOfStream: fc.boolean(),
})

/** Any message of a peer. */
const anyMessage: fc.Arbitrary<ExchangeInput> = fc.oneof(
  { weight: 3, arbitrary: anyHeaders },
  { weight: 5, arbitrary: anyBody },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      trailers,
      responseHeaders,
      bodilessResponse,
      responseBody,
      lastResponseBody,
      responseTrailers,
      unknown,
    ),
  },
)

/** A decision with an observer of its own. */
const anyObserved: fc.Arbitrary<ExchangeInput> = fc.nat().map((seed) => ({
  kind: 'decision',
  decision: {
    kind: 'passthrough',
    destinations: [],
    observer: { ...observer, setHeaders: { 'x-seen': String(seed) } },
  },
}))

/** A decision with a rewriter of its own. */
const anyRewritten: fc.Arbitrary<ExchangeInput> = fc.nat().map(() => ({
  kind: 'decision',
  decision: {
    kind: 'passthrough',
    destinations: [],
    rewriter: { head: () => 'rewrite', chunk: (bytes) => bytes, end: () => {} },
  },
}))

/** Anything that can happen to a stream, likely things more often. */
const anyInput: fc.Arbitrary<ExchangeInput> = fc.oneof(
  { weight: 6, arbitrary: anyMessage },
  { weight: 4, arbitrary: fc.constantFrom(pass, reject, needBody, needBody) },
  { weight: 3, arbitrary: anyObserved },
  { weight: 3, arbitrary: anyRewritten },
  { weight: 1, arbitrary: fc.constant(enough) },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: -1, max: 5000 })
      .map((milliseconds): ExchangeInput => ({ kind: 'extend', milliseconds })),
  },
  { weight: 1, arbitrary: fc.constantFrom(halfClosed, closed, drain) },
)

/** Streams that begin as they should, and then do anything. */
export const anyStory: fc.Arbitrary<readonly ExchangeInput[]> = fc.oneof(
  fc.array(anyInput, { maxLength: 30 }),
  fc.tuple(anyHeaders, fc.array(anyInput, { maxLength: 30 })).map(([first, rest]) => [first, ...rest]),
  fc
    .tuple(
      fc.boolean().map(headersWithResponse),
      fc.oneof(anyObserved, anyRewritten),
      fc.array(anyInput, { maxLength: 30 }),
    )
    .map(([first, decision, rest]) => [first, decision, ...rest]),
)
