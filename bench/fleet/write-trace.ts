import { writeFile } from 'node:fs/promises'
import { blockTokens } from '../../playground/replay/trace.ts'
import type { TurnRow } from './measure-way.ts'

/** Writes turns, in the order in which they were sent, in the format that docs/replay.md describes. */
export const writeTrace = async (file: string, turns: readonly TurnRow[], outputTokens: number): Promise<void> => {
  const ids = new Map<string, number>()
  /** A block that is filled further is another one. */
  const idOf = (conversation: string, block: number, filled: number): number => {
    const key = `${conversation} ${block} ${filled}`
    const id = ids.get(key) ?? ids.size
    ids.set(key, id)
    return id
  }
  const answeredMs = new Map<string, number>()
  const lines = turns.map(({ conversation, startMs, totalMs, promptTokens, answerTokens }) => {
    const beforeMs = answeredMs.get(conversation)
    answeredMs.set(conversation, startMs + totalMs)
    const blocks = Array.from({ length: Math.ceil(promptTokens / blockTokens) }, (_, block) =>
      idOf(conversation, block, Math.min(blockTokens, promptTokens - block * blockTokens)),
    )
    return JSON.stringify({
      timestamp: Math.round(startMs),
      input_length: promptTokens,
      output_length: answerTokens || outputTokens,
      hash_ids: blocks,
      conversation,
      pause: beforeMs === undefined ? undefined : Math.round(startMs - beforeMs),
    })
  })
  await writeFile(file, `${lines.join('\n')}\n`)
}
