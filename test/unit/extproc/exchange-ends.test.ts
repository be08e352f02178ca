import { describe } from '@jest/globals'
import {
  body,
  closed,
  drain,
  halfClosed,
  headers,
  headersWithResponse,
  more,
  needBody,
  pass,
  passObserved,
  reject,
  responseHeaders,
  trailers,
  unknown,
} from './exchange-script.ts'
import { asked, broken, goOn, passed, refused, stories, whole } from './exchange-stories.ts'

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
