import { expect } from '@jest/globals'
import type OpenAI from 'openai'
import { untilStored } from '../support/sessions.ts'
import type { Stack } from '../support/stack.ts'
import { type Answer, ask, type Continues, newItems, type Sentences } from './support.ts'

const turns = 10

/** How turns of a client follow each other. */
export interface WayToContinue {
  readonly by: string
  /** What the first turn continues. */
  readonly first: () => Promise<Continues | undefined>
  readonly next: (answer: Answer) => Continues | undefined
}

export const waysToContinue = (client: () => OpenAI): readonly WayToContinue[] => [
  { by: 'previous_response_id', first: async () => undefined, next: ({ id }) => ({ previous_response_id: id }) },
  {
    by: 'conversation',
    first: async () => ({ conversation: (await client().conversations.create()).id }),
    next: ({ conversation }) => (conversation ? { conversation: conversation.id } : undefined),
  },
]

/** Every other one is streamed. Each turn sends its new items alone, and starts from the KV of all that went before, on two pods and in one session. */
export const takeTenTurns = async (options: {
  readonly stack: Stack
  readonly client: OpenAI
  readonly way: WayToContinue
  /** Members of the answer to a turn that continues this. */
  readonly expected: (continues: Continues | undefined) => object
  /** Default: that of the embedded engine. */
  readonly model?: string
  /** Default: few. */
  readonly sentences?: Sentences
}): Promise<void> => {
  const { stack, client, way, model, sentences } = options
  let continues = await way.first()
  let history = 0
  const pods = new Set<string | null>()
  const sessions = new Set<string | null>()
  for (let turn = 1; turn <= turns; turn += 1) {
    const stream = turn % 2 === 1
    const { answer, cache, session } = await ask(client, {
      input: newItems(turn, sentences),
      continues,
      stream,
      model,
    })
    sessions.add(session)
    expect(answer).toMatchObject(options.expected(continues))
    const { input_tokens = 0, output_tokens = 0, input_tokens_details } = answer.usage ?? {}
    if (turn === 1) expect(cache).toBe('miss; reason=new_session')
    else {
      expect(cache).toMatch(/^hit; /)
      expect(input_tokens_details?.cached_tokens ?? 0).toBeGreaterThanOrEqual(0.9 * history)
    }
    history = input_tokens + output_tokens
    continues = way.next(answer)
    const { kv } = await untilStored(stack, session ?? '', turn)
    pods.add(kv.pod)
  }
  expect(sessions.size).toBe(1)
  expect(pods.size).toBe(2)
}
