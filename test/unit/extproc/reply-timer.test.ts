import { expect, test } from '@jest/globals'
import type { Phase, Reply } from '../../../src/extproc/messages.ts'
import { ReplyTimer } from '../../../src/extproc/reply-timer.ts'

const goOn = (phase: Phase): Reply => ({ kind: 'continue', phase })
const answer: Reply = {
  kind: 'immediate',
  answer: { status: 200, headers: {}, body: Buffer.alloc(0), details: 'ctx_answer' },
}

type Moment = { readonly at: number } & ({ readonly received: Phase } | { readonly sent: Reply })

test.each<[string, readonly Moment[], readonly (readonly [Phase, number])[]]>([
  [
    'one message',
    [
      { at: 5, received: 'request-headers' },
      { at: 7, sent: goOn('request-headers') },
    ],
    [['request-headers', 2]],
  ],
  [
    'messages that did not wait',
    [
      { at: 0, received: 'request-headers' },
      { at: 1, received: 'request-body' },
      { at: 2, received: 'request-body' },
      { at: 3, sent: goOn('request-headers') },
      { at: 4, sent: goOn('request-body') },
      { at: 5, sent: goOn('request-body') },
    ],
    [
      ['request-headers', 3],
      ['request-body', 3],
      ['request-body', 3],
    ],
  ],
  [
    'a reply that overtakes another is not taken for it',
    [
      { at: 0, received: 'request-headers' },
      { at: 9, received: 'response-headers' },
      { at: 10, sent: goOn('response-headers') },
    ],
    [['response-headers', 1]],
  ],
  [
    'an answer',
    [
      { at: 1, received: 'request-body' },
      { at: 4, sent: answer },
    ],
    [['request-body', 3]],
  ],
  [
    'more time is no reply',
    [
      { at: 1, received: 'request-body' },
      { at: 2, sent: { kind: 'extend', milliseconds: 1 } },
    ],
    [],
  ],
  [
    'a reply to nothing',
    [
      { at: 1, sent: goOn('request-body') },
      { at: 1, sent: answer },
    ],
    [],
  ],
])('%s', (_name, moments, expected) => {
  const reported: [Phase, number][] = []
  let now = 0
  const timer = new ReplyTimer({
    now: () => now,
    report: (phase, milliseconds) => reported.push([phase, milliseconds]),
  })
  for (const moment of moments) {
    now = moment.at
    if ('received' in moment) timer.received(moment.received)
    else timer.sent(moment.sent)
  }
  expect(reported).toEqual(expected)
})
