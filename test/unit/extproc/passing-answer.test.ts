import { expect, test } from '@jest/globals'
import { PassingAnswer } from '../../../src/extproc/picker/passing-answer.ts'

test('the first token of a picker’s answer is the first byte of its body, not its headers', async () => {
  let nowMs = 0
  const ended: unknown[] = []
  const answer = new PassingAnswer(
    {
      responseHeaders: {},
      ticket: 't',
      pod: '10.0.0.1:8000',
      path: '/v1/completions',
      observer: undefined,
      rewriter: undefined,
    },
    {
      service: { endTurn: async (end) => void ended.push(end) },
      fault: (error) => {
        throw error
      },
      now: () => nowMs,
    },
  )
  answer.requestSent()
  nowMs = 17
  const headers: Readonly<Record<string, readonly string[]>> = {
    ':status': ['200'],
    'content-type': ['text/event-stream'],
  }
  answer.head({ kind: 'response_headers', headers: (name) => headers[name] ?? [], endOfStream: false })
  nowMs = 9_886
  answer.chunk(Buffer.from('data: {"choices":[{"text":"a"}]}\n\n'))
  nowMs = 9_900
  answer.chunk(Buffer.from('data: [DONE]\n\n'))
  answer.end('complete')
  expect(ended).toEqual([expect.objectContaining({ ttfbMs: 9_886, status: 200, isStream: true })])
})
