import { describe, expect, test } from '@jest/globals'
import { createConversations } from '../../../../playground/replay/conversations.ts'
import { traceRequest } from './requests.ts'

/** Names conversations by the order in which they turn up: 1, 2, … */
const recognised = (...prompts: readonly { readonly blocks: readonly number[]; readonly tokens?: number }[]) => {
  const conversations = createConversations()
  const names = prompts.map(({ blocks, tokens }) =>
    conversations.recognise(traceRequest(blocks, { inputTokens: tokens ?? blocks.length * 512 })),
  )
  return names.map((name) => [...new Set(names)].indexOf(name) + 1)
}

describe('conversations in a trace', () => {
  test.each([
    { name: 'a longer prompt continues', prompts: [{ blocks: [0, 1] }, { blocks: [0, 1, 2] }], are: [1, 1] },
    {
      name: 'a prompt whose last block was not full continues in another block',
      prompts: [{ blocks: [0, 1, 2], tokens: 1_100 }, { blocks: [0, 1, 3, 4] }],
      are: [1, 1],
    },
    { name: 'the same prompt again continues', prompts: [{ blocks: [0, 1] }, { blocks: [0, 1] }], are: [1, 1] },
    {
      name: 'a common system prompt is no conversation',
      prompts: [{ blocks: [0] }, { blocks: [0, 1] }, { blocks: [0, 2] }],
      are: [1, 2, 3],
    },
    {
      name: 'a common beginning that was never a whole prompt is no conversation',
      prompts: [{ blocks: [0, 1, 2, 3] }, { blocks: [0, 1, 4, 5] }],
      are: [1, 2],
    },
    {
      name: 'the longest prefix counts',
      prompts: [
        { blocks: [0, 1] },
        { blocks: [7, 8] },
        { blocks: [0, 1, 2] },
        { blocks: [0, 1, 2, 3] },
        { blocks: [7, 8, 9] },
      ],
      are: [1, 2, 1, 1, 2],
    },
    {
      name: 'a turn that is asked anew continues from the one before it',
      prompts: [{ blocks: [0, 1] }, { blocks: [0, 1, 2] }, { blocks: [0, 1, 3] }],
      are: [1, 1, 1],
    },
  ])('$name', ({ prompts, are }) => {
    expect(recognised(...prompts)).toEqual(are)
  })

  test('have the names that the trace gives them', () => {
    const conversations = createConversations()
    const names = ['b', 'a', 'b'].map((conversation) => conversations.recognise(traceRequest([1, 2], { conversation })))
    expect(names).toEqual(['b', 'a', 'b'])
    expect(conversations.count).toBe(2)
  })

  test('are counted once, however many turns they have', () => {
    const conversations = createConversations()
    for (const blocks of [
      [0, 1],
      [0, 1, 2],
      [5, 6],
    ])
      conversations.recognise(traceRequest(blocks))
    expect(conversations.count).toBe(2)
  })
})
