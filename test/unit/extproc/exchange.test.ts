import { describe, expect, test } from '@jest/globals'
import type { BodyMode } from '../../../src/extproc/codec.ts'
import type { ExchangeInput } from '../../../src/extproc/exchange.ts'
import {
  bodilessResponse,
  body,
  closed,
  drain,
  enough,
  halfClosed,
  headers,
  headersWithResponse,
  lastResponseBody,
  more,
  needBody,
  pass,
  passObserved,
  play,
  reject,
  responseBody,
  responseHeaders,
  responseTrailers,
  trailers,
  unknown,
} from './exchange-script.ts'

type Story = [name: string, inputs: readonly ExchangeInput[], effects: readonly string[]]

const asked = 'decide_on_headers'
const passed = 'passthrough request_headers'
const goOn = 'continue request_headers'
const whole = 'decide_on_body "{}"'
const failed = 'reject internal_error'
const refused = 'reject session_not_found'
const broken = ['fault', 'end internal']

const stories = (rows: readonly Story[]): void => {
  test.each<Story>(rows)('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
}

describe('a decision on the headers', () => {
  stories([
    [
      'is their reply, and Envoy ends the stream',
      [headers('none'), pass, halfClosed, closed],
      [asked, passed, 'end ok'],
    ],
    [
      'that rejects is the last reply',
      [headers(), reject, halfClosed, closed],
      [asked, `${refused} request_headers`, 'end ok'],
    ],
    [
      'that rejects gets no replies to later messages',
      [headers(), reject, body('{}'), trailers, responseHeaders],
      [asked, `${refused} request_headers`],
    ],
    [
      'lets all later phases continue',
      [headers(), pass, body('a', false), body('b'), trailers, responseHeaders, responseBody, responseTrailers],
      [
        asked,
        passed,
        'continue request_body',
        'continue request_body',
        'continue request_trailers',
        'continue response_headers',
        'continue response_body',
        'continue response_trailers',
      ],
    ],
    [
      'is replied before pieces that came in the meantime',
      [headers('full_duplex_streamed'), body('a', false), body('b'), pass],
      [asked, passed, 'continue request_body', 'continue request_body'],
    ],
    [
      'that rejects gets no replies to pieces that came in the meantime',
      [headers('full_duplex_streamed'), body('a'), reject],
      [asked, `${refused} request_headers`],
    ],
    ['counts once', [headers('none'), pass, reject], [asked, passed]],
    [
      'ends a stream whose response is not observed',
      [headersWithResponse(), pass, body('{}'), responseHeaders],
      [asked, passed, 'end ok'],
    ],
  ])
})

describe('a decision on the body', () => {
  stories([
    [
      'is the reply to the body, and leaves the end to Envoy',
      [headers(), needBody, body('{}'), pass, halfClosed, closed],
      [asked, goOn, whole, 'passthrough request_body', 'end ok'],
    ],
    [
      'that rejects leaves the end to Envoy',
      [headers(), needBody, body('{}'), reject],
      [asked, goOn, whole, `${refused} request_body`],
    ],
    [
      'gets a buffered body without an end of stream, since trailers follow it',
      [headers(), needBody, body('{}', false), pass, trailers],
      [asked, goOn, whole, 'passthrough request_body', 'continue request_trailers'],
    ],
    [
      'gets the pieces joined where the mode is unknown',
      [headers('unknown'), needBody, body('{', false), body('', false), body('}'), pass],
      [asked, goOn, 'continue request_body', 'continue request_body', whole, 'passthrough request_body'],
    ],
    [
      'of a request without a body is the reply to its headers',
      [headers('buffered', true), needBody, pass],
      [asked, 'decide_on_body ""', passed],
    ],
    [
      'of a request without a body may reject',
      [headers('none', true), needBody, reject],
      [asked, 'decide_on_body ""', `${refused} request_headers`],
    ],
    [
      'of a request with trailers alone may reject',
      [headers(), needBody, trailers, reject],
      [asked, goOn, 'decide_on_body ""', `${refused} request_trailers`],
    ],
    [
      'of a request with trailers alone cannot forward',
      [headers(), needBody, trailers, pass],
      [asked, goOn, 'decide_on_body ""', 'fault', `${failed} request_trailers`],
    ],
    [
      'of a request with trailers alone releases its observer',
      [headers(), needBody, trailers, passObserved],
      [asked, goOn, 'decide_on_body ""', 'observe broken', 'fault', `${failed} request_trailers`],
    ],
    [
      'cannot need the body again',
      [headers(), needBody, body('{}'), needBody],
      [asked, goOn, whole, 'fault', `${failed} request_body`],
    ],
  ])

  test.each<BodyMode>(['none', 'streamed', 'buffered_partial', 'full_duplex_streamed', 'grpc'])(
    'is refused in mode %s, which sends no whole body before the request is forwarded',
    (bodyMode) => {
      expect(play([headers(bodyMode), needBody])).toEqual([asked, 'fault', `${failed} request_headers`])
    },
  )
})

describe('a body above the limit of 10 bytes', () => {
  const tooLarge = 'reject request_too_large'
  stories([
    ['is not one of 10 bytes', [headers(), needBody, body('0123456789')], [asked, goOn, 'decide_on_body "0123456789"']],
    [
      'is refused when it has one byte more',
      [headers(), needBody, body('0123456789a'), halfClosed],
      [asked, goOn, `${tooLarge} request_body`, 'end ok'],
    ],
    [
      'is refused when it comes in pieces',
      [headers('unknown'), needBody, body('01234', false), body('56789', false), body('a', false), body('b')],
      [asked, goOn, 'continue request_body', 'continue request_body', `${tooLarge} request_body`],
    ],
    [
      'is refused while the headers are decided on',
      [headers('full_duplex_streamed'), body('0123456789a'), pass],
      [asked, 'abort', `${tooLarge} request_headers`],
    ],
    ['passes after the decision', [headers(), pass, body('0123456789a')], [asked, passed, 'continue request_body']],
  ])
})

describe('an observed response', () => {
  const observed = [headersWithResponse(), needBody, body('{}'), passObserved]
  const forwarded = [asked, goOn, whole, 'passthrough request_body']
  const head = ['set x-seen response_headers', 'observe_head']

  stories([
    [
      'is observed piece by piece, each after its reply',
      [...observed, responseHeaders, responseBody, lastResponseBody, halfClosed, closed],
      [
        ...forwarded,
        ...head,
        'continue response_body',
        'observe "a"',
        'continue response_body',
        'observe "z"',
        'observe complete',
        'end ok',
      ],
    ],
    [
      'of a request decided on its headers is observed too',
      [headersWithResponse(), passObserved, body('{}'), trailers, bodilessResponse, closed],
      [asked, passed, 'continue request_body', 'continue request_trailers', ...head, 'observe complete'],
    ],
    [
      'is complete with its trailers',
      [...observed, responseHeaders, responseBody, responseTrailers, responseTrailers],
      [
        ...forwarded,
        ...head,
        'continue response_body',
        'observe "a"',
        'continue response_trailers',
        'observe complete',
        'continue response_trailers',
      ],
    ],
    [
      'may have a second head and a second end',
      [...observed, responseHeaders, responseHeaders, lastResponseBody, lastResponseBody],
      [
        ...forwarded,
        ...head,
        'continue response_headers',
        'continue response_body',
        'observe "z"',
        'observe complete',
        'continue response_body',
      ],
    ],
    [
      'is broken when Envoy closes its side early',
      [...observed, responseHeaders, responseBody, halfClosed, closed],
      [...forwarded, ...head, 'continue response_body', 'observe "a"', 'observe broken', 'end ok'],
    ],
    ['is broken with its stream', [...observed, responseHeaders, closed], [...forwarded, ...head, 'observe broken']],
    ['is broken when it never comes', [...observed, closed], [...forwarded, 'observe broken']],
    [
      'ends the stream once the observer has enough',
      [...observed, responseHeaders, responseBody, enough, responseBody, halfClosed, closed],
      [...forwarded, ...head, 'continue response_body', 'observe "a"', 'observe broken', 'end ok'],
    ],
    [
      'ignores an observer that has enough after the end',
      [...observed, bodilessResponse, enough],
      [...forwarded, ...head, 'observe complete'],
    ],
    [
      'is broken when its body comes without headers',
      [...observed, responseBody, lastResponseBody],
      [...forwarded, 'continue response_body', 'observe broken', 'continue response_body'],
    ],
    [
      'is broken when its trailers come without headers',
      [...observed, responseTrailers],
      [...forwarded, 'continue response_trailers', 'observe broken'],
    ],
    [
      'is broken where Envoy does not send the response',
      [headers(), needBody, body('{}'), passObserved],
      [...forwarded, 'observe broken'],
    ],
    ['is broken by a message out of order', [...observed, unknown], [...forwarded, 'observe broken', ...broken]],
    [
      'is broken when the decision is late',
      [headersWithResponse(), closed, passObserved],
      [asked, 'abort', 'observe broken'],
    ],
    [
      'releases the observer of a second decision',
      [...observed, passObserved, responseHeaders],
      [...forwarded, 'observe broken', ...head],
    ],
  ])
})

describe('a response that Envoy makes by itself', () => {
  stories([
    [
      'to a request that was never sent here passes',
      [responseHeaders, responseBody, responseTrailers, halfClosed],
      ['continue response_headers', 'continue response_body', 'continue response_trailers', 'end ok'],
    ],
    [
      'aborts the decision on the headers',
      [headers(), responseHeaders, pass, responseBody, halfClosed],
      [asked, 'abort', 'continue response_headers', 'continue response_body', 'end ok'],
    ],
    [
      'ends the wait for a body',
      [headers(), needBody, responseHeaders, halfClosed],
      [asked, goOn, 'continue response_headers', 'end ok'],
    ],
    [
      'aborts the decision on the body',
      [headers(), needBody, body('{}'), responseTrailers, pass, closed],
      [asked, goOn, whole, 'abort', 'continue response_trailers'],
    ],
  ])
})

describe('more time', () => {
  stories([
    ['is granted once per decision', [headers(), more(5000), more(7000), pass], [asked, 'extend 5000', passed]],
    [
      'is granted again for the body',
      [headers(), more(1), needBody, body('{}'), more(2), more(3), reject],
      [asked, 'extend 1', goOn, whole, 'extend 2', `${refused} request_body`],
    ],
    [
      'is not granted again while the reply to the headers is owed',
      [headers('none', true), more(1), needBody, more(2), reject],
      [asked, 'extend 1', 'decide_on_body ""', `${refused} request_headers`],
    ],
    ['is not granted after the decision', [headers('none'), pass, more(5000)], [asked, passed]],
    ['is not granted while a body is awaited', [headers(), needBody, more(5000)], [asked, goOn]],
    ['is not granted after the end', [headers(), closed, more(5000)], [asked, 'abort']],
    [
      'is at least a millisecond',
      [headers(), more(0), more(-1), more(Number.NaN), more(Number.POSITIVE_INFINITY)],
      [asked],
    ],
    ['is not granted before the first message', [more(5000), headers()], [asked]],
  ])
})

describe('a peer that leaves', () => {
  stories([
    ['before the first message ends the stream well', [halfClosed, closed], ['end ok']],
    ['aborts the decision on the headers', [headers(), halfClosed, pass, closed], [asked, 'abort', 'end cancelled']],
    ['without a half close aborts it too', [headers(), closed, pass], [asked, 'abort']],
    ['ends the wait for a body', [headers(), needBody, halfClosed], [asked, goOn, 'end cancelled']],
    [
      'aborts the decision on the body',
      [headers(), needBody, body('{}'), halfClosed, reject],
      [asked, goOn, whole, 'abort', 'end cancelled'],
    ],
    ['may leave twice', [headers('none'), pass, halfClosed, halfClosed, closed, closed], [asked, passed, 'end ok']],
  ])
})

describe('a server that stops', () => {
  stories([
    ['ends a stream that waits for Envoy', [headers('none'), pass, drain], [asked, passed, 'end ok']],
    ['leaves a stream that owes a reply', [headers('none'), drain, pass], [asked, passed]],
    [
      'leaves a response that is observed',
      [headersWithResponse(), needBody, body('{}'), passObserved, drain],
      [asked, goOn, whole, 'passthrough request_body'],
    ],
  ])
})

describe('a message out of order ends the stream with an error', () => {
  stories([
    ['a body first', [body('{}'), headers(), halfClosed], broken],
    ['trailers first', [trailers], broken],
    ['an unknown kind first', [unknown], broken],
    ['headers twice', [headers(), headers(), pass], [asked, 'abort', ...broken]],
    ['headers after the decision', [headers('none'), pass, headers()], [asked, passed, ...broken]],
    ['headers while the body is awaited', [headers(), needBody, headers()], [asked, goOn, ...broken]],
    ['headers after the response', [responseHeaders, headers()], ['continue response_headers', ...broken]],
    [
      'a body after the response',
      [headers(), responseHeaders, body('')],
      [asked, 'abort', 'continue response_headers', ...broken],
    ],
    ['trailers after the response', [responseHeaders, trailers], ['continue response_headers', ...broken]],
    ['a body before the reply to the headers', [headers(), body('{}')], [asked, 'abort', ...broken]],
    ['a piece after the end', [headers('full_duplex_streamed'), body('{}'), body('')], [asked, 'abort', ...broken]],
    ['a body of a request without one', [headers('full_duplex_streamed', true), body('')], [asked, 'abort', ...broken]],
    [
      'a body while the body is decided on',
      [headers(), needBody, body('{}'), body('')],
      [asked, goOn, whole, 'abort', ...broken],
    ],
    ['trailers before the reply to the headers', [headers(), trailers], [asked, 'abort', ...broken]],
    [
      'trailers twice',
      [headers(), needBody, trailers, trailers],
      [asked, goOn, 'decide_on_body ""', 'abort', ...broken],
    ],
    ['an unknown kind while deciding', [headers(), unknown], [asked, 'abort', ...broken]],
    ['an unknown kind after the decision', [headers('none'), pass, unknown], [asked, passed, ...broken]],
    ['nothing follows the error', [unknown, headers(), pass, halfClosed, closed], broken],
  ])
})
