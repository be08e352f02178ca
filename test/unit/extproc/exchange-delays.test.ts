import { describe, expect, test } from '@jest/globals'
import type { ExchangeInput } from '../../../src/extproc/exchange-state.ts'
import { answer, body, closed, halfClosed, headers, more, needBody, play, proceed } from './exchange-script.ts'

type Story = [name: string, inputs: readonly ExchangeInput[], effects: readonly string[]]

const asked = 'decide on headers'

describe('more time', () => {
  test.each<Story>([
    ['once per verdict', [headers(), more(5000), more(7000), proceed], [asked, 'wait 5000', 'proceed request-headers']],
    [
      'once more for the body',
      [headers(), more(1), needBody, body('{}'), more(2), more(3), proceed],
      [asked, 'wait 1', 'continue request-headers', 'decide on body "{}"', 'wait 2', 'proceed request-body'],
    ],
    [
      'not once more while the reply to the headers is still owed',
      [headers('none', true), more(1), needBody, more(2), proceed],
      [asked, 'wait 1', 'decide on body ""', 'proceed request-headers'],
    ],
    ['not after the verdict', [headers('none'), proceed, more(5000)], [asked, 'proceed request-headers']],
    ['not while Envoy is waited for', [headers(), needBody, more(5000)], [asked, 'continue request-headers']],
    ['not when nobody waits', [headers(), closed, more(5000)], [asked, 'abort']],
    ['not for no time', [headers(), more(0), more(-1), more(Number.NaN), more(Number.POSITIVE_INFINITY)], [asked]],
    ['before anything came', [more(5000), headers()], [asked]],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})

describe('a peer that leaves', () => {
  test.each<Story>([
    ['before anything', [halfClosed, closed], ['end ok']],
    ['while the headers are decided on', [headers(), halfClosed, proceed, closed], [asked, 'abort', 'end cancelled']],
    ['without a half close', [headers(), closed, proceed], [asked, 'abort']],
    [
      'while the body is awaited',
      [headers(), needBody, halfClosed],
      [asked, 'continue request-headers', 'end cancelled'],
    ],
    [
      'while the body is decided on',
      [headers(), needBody, body('{}'), halfClosed, answer],
      [asked, 'continue request-headers', 'decide on body "{}"', 'abort', 'end cancelled'],
    ],
    [
      'broken while the body is decided on',
      [headers(), needBody, body('{}'), closed, answer],
      [asked, 'continue request-headers', 'decide on body "{}"', 'abort'],
    ],
    [
      'broken while the body is awaited',
      [headers(), needBody, closed, halfClosed],
      [asked, 'continue request-headers'],
    ],
    [
      'twice',
      [headers('none'), proceed, halfClosed, halfClosed, closed, closed],
      [asked, 'proceed request-headers', 'end ok'],
    ],
  ])('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
})
