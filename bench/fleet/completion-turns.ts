import { makePrompt, type Vocabulary } from '../prompts.ts'
import type { SendTurn } from './measure-way.ts'
import type { SendNext } from './ways.ts'
import { newTokensOf, promptTokensOf, type Workload } from './workload.ts'

/** Turns of `/v1/completions`, whose prompts are token ids. */
export const createCompletionTurns =
  (
    send: SendNext,
    {
      workload,
      vocabulary,
      promptSeed,
    }: { readonly workload: Workload; readonly vocabulary: Vocabulary; readonly promptSeed: string },
  ): SendTurn =>
  async (conversation, turn) => {
    // Longer prompts of a seed begin with the shorter ones. Made-up tokens stand in for the answer: not every engine
    // tells its own, and bytes that are no text would not survive the way through it.
    const prompt = makePrompt(vocabulary, `${promptSeed} ${conversation}`, promptTokensOf(workload, turn))
    const { sessionId: _, ...seen } = await send(conversation, prompt)
    return [{ conversation, turn, newTokens: newTokensOf(workload, turn), ...seen }]
  }
