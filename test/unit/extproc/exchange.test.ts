import { describe, expect, test } from '@jest/globals'
import type { BodyMode } from '../../../src/extproc/codec.ts'
import {
  bodilessResponse,
  body,
  closed,
  enough,
  halfClosed,
  headers,
  headersWithResponse,
  lastResponseBody,
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
import { asked, broken, failed, goOn, passed, refused, stories, whole } from './exchange-stories.ts'

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
    ['counts once', [headers('none'), pass, reject], [asked, passed]],
    [
      'leaves the end to Envoy where it sends a response that is not observed',
      [headersWithResponse(), pass, body('{}'), responseHeaders, lastResponseBody, halfClosed],
      [asked, passed, 'continue request_body', 'continue response_headers', 'continue response_body', 'end ok'],
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

  test.each<BodyMode>(['none', 'streamed', 'buffered_partial', 'grpc', 'unknown'])(
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
    ['passes after the decision', [headers(), pass, body('0123456789a')], [asked, passed, 'continue request_body']],
  ])
})

describe('an observed response', () => {
  const observed = [headersWithResponse(), needBody, body('{}'), passObserved]
  const forwarded = [asked, goOn, whole, 'passthrough request_body']
  const head = ['set x-seen response_headers', 'observe_head']
  const seen = [...forwarded, ...head, 'continue response_body', 'observe "a"']

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
      [...seen, 'observe broken', 'end ok'],
    ],
    ['is broken with its stream', [...observed, responseHeaders, closed], [...forwarded, ...head, 'observe broken']],
    ['is broken when it never comes', [...observed, closed], [...forwarded, 'observe broken']],
    [
      'goes on once the observer has enough',
      [...observed, responseHeaders, responseBody, enough, lastResponseBody, halfClosed, closed],
      [...seen, 'observe broken', 'continue response_body', 'end ok'],
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
