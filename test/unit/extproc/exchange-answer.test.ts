import { describe, expect, test } from '@jest/globals'
import type { ExchangeInput } from '../../../src/extproc/exchange-state.ts'
import {
  bodilessResponse,
  body,
  closed,
  enough,
  halfClosed,
  headersOfTold,
  headersOnly,
  lastResponseBody,
  needBody,
  play,
  proceed,
  proceedObserved,
  responseBody,
  responseHeaders,
  responseTrailers,
  trailers,
  unknown,
} from './exchange-script.ts'

type Story = [name: string, inputs: readonly ExchangeInput[], effects: readonly string[]]

const asked = 'decide on headers'

describe('an answer that Envoy tells of', () => {
  const observed = [headersOfTold(), needBody, body('{}'), proceedObserved]
  const goneOn = [asked, 'continue request-headers', 'decide on body "{}"', 'proceed request-body']

  test.each<Story>([
    [
      'is told to nobody: the stream ends, and no piece of it crosses',
      [headersOfTold(), proceed, body('{}'), responseHeaders, closed],
      [asked, 'proceed request-headers', 'end ok'],
    ],
    ['the same, decided on its body', [headersOfTold(), needBody, body('{}'), proceed], [...goneOn, 'end ok']],
    [
      'is told piece by piece, each after its reply',
      [...observed, responseHeaders, responseBody, lastResponseBody, halfClosed, closed],
      [
        ...goneOn,
        'set x-seen',
        'tell head',
        'continue response-body',
        'tell "a"',
        'continue response-body',
        'tell "z"',
        'tell complete',
        'end ok',
      ],
    ],
    [
      'decided on the headers',
      [headersOfTold(), proceedObserved, body('{}'), trailers, bodilessResponse, closed],
      [
        asked,
        'proceed request-headers',
        'continue request-body',
        'continue request-trailers',
        'set x-seen',
        'tell head',
        'tell complete',
      ],
    ],
    [
      'ends with trailers',
      [...observed, responseHeaders, responseBody, responseTrailers, responseTrailers],
      [
        ...goneOn,
        'set x-seen',
        'tell head',
        'continue response-body',
        'tell "a"',
        'continue response-trailers',
        'tell complete',
        'continue response-trailers',
      ],
    ],
    [
      'a second end is tolerated, and a second head',
      [...observed, responseHeaders, responseHeaders, lastResponseBody, lastResponseBody],
      [
        ...goneOn,
        'set x-seen',
        'tell head',
        'continue response-headers',
        'continue response-body',
        'tell "z"',
        'tell complete',
        'continue response-body',
      ],
    ],
    [
      'breaks off when Envoy closes its side',
      [...observed, responseHeaders, responseBody, halfClosed, closed],
      [...goneOn, 'set x-seen', 'tell head', 'continue response-body', 'tell "a"', 'tell broken', 'end ok'],
    ],
    [
      'breaks off with the stream',
      [...observed, responseHeaders, closed],
      [...goneOn, 'set x-seen', 'tell head', 'tell broken'],
    ],
    ['never comes', [...observed, closed], [...goneOn, 'tell broken']],
    [
      'is not wanted any more',
      [...observed, responseHeaders, responseBody, enough, responseBody, halfClosed, closed],
      [...goneOn, 'set x-seen', 'tell head', 'continue response-body', 'tell "a"', 'tell broken', 'end ok'],
    ],
    [
      'is not wanted any more after its end',
      [...observed, bodilessResponse, enough],
      [...goneOn, 'set x-seen', 'tell head', 'tell complete'],
    ],
    [
      'without a head says nothing',
      [...observed, responseBody, lastResponseBody],
      [...goneOn, 'continue response-body', 'tell broken', 'continue response-body'],
    ],
    [
      'trailers without a head say nothing',
      [...observed, responseTrailers],
      [...goneOn, 'continue response-trailers', 'tell broken'],
    ],
    [
      'is not told after all',
      [headersOnly(), needBody, body('{}'), proceedObserved],
      [...goneOn, 'tell broken', 'end ok'],
    ],
    ['its request is out of order', [...observed, unknown], [...goneOn, 'tell broken', 'fault', 'end internal']],
    ['the verdict comes too late', [headersOfTold(), closed, proceedObserved], [asked, 'abort', 'tell broken']],
    [
      'the verdict comes twice',
      [...observed, proceedObserved, responseHeaders],
      [...goneOn, 'tell broken', 'set x-seen', 'tell head'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})
