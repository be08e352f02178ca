import { describe, expect, test } from '@jest/globals'
import type { ExchangeInput } from '../../../src/extproc/exchange-state.ts'
import type { BodyMode } from '../../../src/extproc/messages.ts'
import {
  answer,
  body,
  closed,
  endingFirst,
  halfClosed,
  headers,
  headersOnly,
  needBody,
  play,
  proceed,
  responseBody,
  responseHeaders,
  responseTrailers,
  trailers,
  unknown,
} from './exchange-script.ts'

type Story = [name: string, inputs: readonly ExchangeInput[], effects: readonly string[]]

const asked = 'decide on headers'

describe('decided on the headers', () => {
  test.each<Story>([
    [
      'the verdict is the reply',
      [headers('none'), proceed, halfClosed, closed],
      [asked, 'proceed request-headers', 'end ok'],
    ],
    ['an answer is the last reply', [headers(), answer, halfClosed, closed], [asked, 'answer 204', 'end ok']],
    [
      'after an answer nothing is replied to',
      [headers(), answer, body('{}'), trailers, responseHeaders],
      [asked, 'answer 204'],
    ],
    [
      'later phases go on',
      [headers(), proceed, body('a', false), body('b'), trailers, responseHeaders, responseBody, responseTrailers],
      [
        asked,
        'proceed request-headers',
        'continue request-body',
        'continue request-body',
        'continue request-trailers',
        'continue response-headers',
        'continue response-body',
        'continue response-trailers',
      ],
    ],
    [
      'messages that do not wait get their replies after it, in order',
      [headers('streamed'), body('a', false), body('b'), trailers, proceed],
      [asked, 'proceed request-headers', 'continue request-body', 'continue request-body', 'continue request-trailers'],
    ],
    ['an answer replies to those no more', [headers('streamed'), body('a'), answer], [asked, 'answer 204']],
    ['a second verdict changes nothing', [headers('none'), proceed, answer], [asked, 'proceed request-headers']],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})

describe('decided on the body', () => {
  const whole = 'decide on body "{}"'

  test.each<Story>([
    [
      'headers go on, the body is decided on and carries the verdict',
      [headers(), needBody, body('{}'), proceed, halfClosed],
      [asked, 'continue request-headers', whole, 'proceed request-body', 'end ok'],
    ],
    [
      'a buffered body is whole without end of stream: trailers follow it',
      [headers(), needBody, body('{}', false), trailers, proceed],
      [asked, 'continue request-headers', whole, 'proceed request-body', 'continue request-trailers'],
    ],
    [
      'pieces are put together where the mode is not told',
      [headers('unknown'), needBody, body('{', false), body('', false), body('}'), proceed],
      [
        asked,
        'continue request-headers',
        'continue request-body',
        'continue request-body',
        whole,
        'proceed request-body',
      ],
    ],
    [
      'a whole body that came before it was asked for',
      [headers(), body('{}'), trailers, needBody, proceed],
      [asked, 'continue request-headers', whole, 'proceed request-body', 'continue request-trailers'],
    ],
    [
      'pieces that came before they were asked for',
      [headers('unknown'), body('{', false), body('}'), needBody, proceed],
      [asked, 'continue request-headers', 'continue request-body', whole, 'proceed request-body'],
    ],
    [
      'some pieces before, some after',
      [headers('unknown'), body('{', false), needBody, body('}'), proceed],
      [asked, 'continue request-headers', 'continue request-body', whole, 'proceed request-body'],
    ],
    [
      'a second end of stream is tolerated',
      [headers(), needBody, body('{}'), body(''), proceed, body('')],
      [
        asked,
        'continue request-headers',
        whole,
        'proceed request-body',
        'continue request-body',
        'continue request-body',
      ],
    ],
    [
      'no body: the verdict goes with the headers',
      [headers('buffered', true), needBody, proceed],
      [asked, 'decide on body ""', 'proceed request-headers'],
    ],
    ['no body: an answer', [headers('none', true), needBody, answer], [asked, 'decide on body ""', 'answer 204']],
    [
      'trailers in place of a body: an answer',
      [headers(), needBody, trailers, answer],
      [asked, 'continue request-headers', 'decide on body ""', 'answer 204'],
    ],
    [
      'trailers in place of a body: nothing can be changed any more',
      [headers(), needBody, trailers, proceed],
      [asked, 'continue request-headers', 'decide on body ""', 'fault', 'answer 500'],
    ],
    [
      'trailers that came before the body was asked for',
      [headers('unknown'), body('{', false), trailers, needBody],
      [asked, 'fault', 'answer 500'],
    ],
    [
      'asked for twice',
      [headers(), needBody, body('{}'), needBody],
      [asked, 'continue request-headers', whole, 'fault', 'answer 500'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })

  test.each<BodyMode>(['none', 'streamed', 'buffered-partial', 'full-duplex-streamed', 'grpc'])(
    'mode %s cannot tell a body before the request goes on: refused',
    (bodyMode) => {
      expect(play([headers(bodyMode), needBody])).toEqual([asked, 'fault', 'answer 500'])
    },
  )
})

describe('where Envoy will not tell the response', () => {
  const whole = ['continue request-headers', 'decide on body "{}"']

  test.each<Story>([
    [
      'the verdict on the body ends the stream',
      [headersOnly(), needBody, body('{}'), proceed, halfClosed, closed],
      [asked, ...whole, 'proceed request-body', 'end ok'],
    ],
    [
      'messages that wait get their replies before',
      [headersOnly(), body('{}', false), trailers, needBody, proceed],
      [asked, ...whole, 'proceed request-body', 'continue request-trailers', 'end ok'],
    ],
    [
      'nothing is replied to after it',
      [headersOnly(), needBody, body('{}'), proceed, trailers, responseHeaders],
      [asked, ...whole, 'proceed request-body', 'end ok'],
    ],
    [
      'so does the one on a request without a body',
      [headersOnly(true), needBody, proceed],
      [asked, 'decide on body ""', 'proceed request-headers', 'end ok'],
    ],
    [
      'an answer leaves the end to Envoy',
      [headersOnly(), needBody, body('{}'), answer],
      [asked, ...whole, 'answer 204'],
    ],
    [
      'a verdict on the headers leaves it, too',
      [headersOnly(), proceed, body('{}'), halfClosed],
      [asked, 'proceed request-headers', 'continue request-body', 'end ok'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})

describe('on a transport that ends streams first', () => {
  test.each<Story>([
    [
      'the verdict ends a stream on which nothing more is told',
      [headersOnly(false, 'none'), proceed, halfClosed, closed],
      [asked, 'proceed request-headers', 'end ok'],
    ],
    [
      'messages that came all the same get their replies before',
      [headersOnly(false, 'none'), trailers, proceed],
      [asked, 'proceed request-headers', 'continue request-trailers', 'end ok'],
    ],
    [
      'one on which a body may come is left to Envoy',
      [headersOnly(false, 'buffered'), proceed, body('{}'), halfClosed],
      [asked, 'proceed request-headers', 'continue request-body', 'end ok'],
    ],
    [
      'one of which Envoy says nothing is left to it',
      [headers('none'), proceed, halfClosed],
      [asked, 'proceed request-headers', 'end ok'],
    ],
    ['so is one that was answered', [headersOnly(false, 'none'), answer, halfClosed], [asked, 'answer 204', 'end ok']],
    [
      'nothing ends before its verdict',
      [headersOnly(false, 'none'), halfClosed, proceed],
      [asked, 'abort', 'end cancelled'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs, endingFirst)).toEqual(effects)
  })
})

describe('bodies above the limit of 10 bytes', () => {
  test.each<Story>([
    [
      'exactly the limit',
      [headers(), needBody, body('0123456789')],
      [asked, 'continue request-headers', 'decide on body "0123456789"'],
    ],
    [
      'one byte more',
      [headers(), needBody, body('0123456789a'), halfClosed],
      [asked, 'continue request-headers', 'answer 413', 'end ok'],
    ],
    [
      'in pieces',
      [headers('unknown'), needBody, body('01234', false), body('56789', false), body('a', false), body('b')],
      [asked, 'continue request-headers', 'continue request-body', 'continue request-body', 'answer 413'],
    ],
    ['while the headers are decided on', [headers(), body('0123456789a'), proceed], [asked, 'abort', 'answer 413']],
    [
      'of no concern once the verdict is out',
      [headers(), proceed, body('0123456789a')],
      [asked, 'proceed request-headers', 'continue request-body'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})

describe('a response that Envoy makes by itself', () => {
  test.each<Story>([
    [
      'to a request that was never told of',
      [responseHeaders, responseBody, responseTrailers, halfClosed],
      ['continue response-headers', 'continue response-body', 'continue response-trailers', 'end ok'],
    ],
    [
      'while the headers are decided on',
      [headers(), responseHeaders, proceed, responseBody, halfClosed],
      [asked, 'abort', 'continue response-headers', 'continue response-body', 'end ok'],
    ],
    [
      'while the body is awaited',
      [headers(), needBody, responseHeaders, halfClosed],
      [asked, 'continue request-headers', 'continue response-headers', 'end ok'],
    ],
    [
      'while the body is decided on',
      [headers(), needBody, body('{}'), responseTrailers, proceed, closed],
      [asked, 'continue request-headers', 'decide on body "{}"', 'abort', 'continue response-trailers'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})

describe('messages out of order end the stream with an error', () => {
  const broken = ['fault', 'end internal']
  const given = 'continue request-headers'

  test.each<Story>([
    ['a body first', [body('{}'), headers(), halfClosed], broken],
    ['trailers first', [trailers], broken],
    ['a message of an unknown kind first', [unknown], broken],
    ['headers twice', [headers(), headers(), proceed], [asked, 'abort', ...broken]],
    [
      'headers again after the verdict',
      [headers('none'), proceed, headers()],
      [asked, 'proceed request-headers', ...broken],
    ],
    ['headers while the body is awaited', [headers(), needBody, headers()], [asked, given, ...broken]],
    ['headers after the response', [responseHeaders, headers()], ['continue response-headers', ...broken]],
    [
      'a body after the response began',
      [headers(), responseHeaders, body('')],
      [asked, 'abort', 'continue response-headers', ...broken],
    ],
    ['trailers after the response began', [responseHeaders, trailers], ['continue response-headers', ...broken]],
    ['a body although none was to follow', [headers('buffered', true), body('')], [asked, 'abort', ...broken]],
    [
      'a body although none was to follow, decided on',
      [headers('buffered', true), needBody, body('')],
      [asked, 'decide on body ""', 'abort', ...broken],
    ],
    ['a body after its end', [headers(), body('{}'), body('')], [asked, 'abort', ...broken]],
    ['a body after trailers', [headers('unknown'), trailers, body('')], [asked, 'abort', ...broken]],
    ['trailers twice', [headers(), trailers, trailers], [asked, 'abort', ...broken]],
    [
      'trailers twice, decided on',
      [headers(), needBody, trailers, trailers],
      [asked, given, 'decide on body ""', 'abort', ...broken],
    ],
    [
      'trailers twice after the body',
      [headers(), needBody, body('{}'), trailers, trailers],
      [asked, given, 'decide on body "{}"', 'abort', ...broken],
    ],
    ['an unknown kind while deciding', [headers(), unknown], [asked, 'abort', ...broken]],
    [
      'an unknown kind after the verdict',
      [headers('none'), proceed, unknown],
      [asked, 'proceed request-headers', ...broken],
    ],
    ['nothing is done after the error', [unknown, headers(), proceed, halfClosed, closed], broken],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })

  test('a flood of messages before the first reply', () => {
    const flood = Array.from({ length: 1025 }, () => body('', false))
    expect(play([headers('streamed'), ...flood])).toEqual([asked, 'abort', ...broken])
  })
})
