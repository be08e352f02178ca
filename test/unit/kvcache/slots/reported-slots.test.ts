import { describe, expect, test } from '@jest/globals'
import { eraseAnswer, restoreAnswer, saveAnswer, slotsAnswer } from '../../../../src/kvcache/slots/slot-client.ts'

const nextToken = [{ has_next_token: false, has_new_line: false, n_remain: -1, n_decoded: 0 }]

describe('a slot, as reported by', () => {
  test.each([
    [
      'llama-server, before anything ran there',
      { id: 0, n_ctx: 4096, speculative: false, is_processing: false },
      { id: 0, busy: false, task: undefined, tokens: undefined, keep: undefined },
    ],
    [
      'llama-server, after a request',
      {
        id: 1,
        n_ctx: 4096,
        speculative: false,
        is_processing: false,
        id_task: 29,
        n_prompt_tokens: 244,
        n_prompt_tokens_processed: 0,
        n_prompt_tokens_cache: 0,
        params: { seed: 4294967295, n_keep: 77 },
        next_token: nextToken,
      },
      { id: 1, busy: false, task: 29, tokens: 244, keep: 77 },
    ],
  ])('%s', (_name, answer, expected) => {
    expect(slotsAnswer.parse([answer])).toEqual([expected])
  })

  test.each([
    ['no list', {}],
    ['without a number', [{ is_processing: false }]],
    ['with a negative number', [{ id: -1, is_processing: false }]],
    ['without its state', [{ id: 0 }]],
    ['with tokens that cannot be', [{ id: 0, is_processing: false, n_prompt_tokens: -4 }]],
  ])('is refused: %s', (_name, answer) => {
    expect(slotsAnswer.safeParse(answer).success).toBe(false)
  })
})

test('the answers to actions', () => {
  const save = { id_slot: 1, filename: 'x.kv', n_saved: 244, n_written: 503768, timings: { save_ms: 1.4 } }
  expect(saveAnswer.parse(save)).toEqual({ slot: 1, tokens: 244, bytes: 503768 })
  const restore = { id_slot: 0, filename: 'x.kv', n_restored: 244, n_read: 503768, timings: { restore_ms: 0.3 } }
  expect(restoreAnswer.parse(restore)).toEqual({ slot: 0, tokens: 244 })
  expect(eraseAnswer.safeParse({ id_slot: 1, n_erased: 244 }).success).toBe(true)
})
