// What the forms of answers have in common.
import { randomUUID } from 'node:crypto'
import type { Answer, PromptCounts } from './engine.ts'

/** Writes one answer in the form of its interface: whole, or as server-sent events. */
export interface AnswerFormat {
  /** The answer to a request that is not streamed. */
  whole(answer: Answer): object
  /** Events in front of the first text. */
  streamStart(prompt: PromptCounts): string
  streamText(text: string): string
  streamEnd(answer: Answer): string
}

/** A server-sent event without a name. */
export const dataLine = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
/** A server-sent event. */
export const namedEvent = (name: string, data: object): string => `event: ${name}\n${dataLine(data)}`
/** For ids. */
export const uniqueKey = (): string => randomUUID().replaceAll('-', '')
export const nowSeconds = (): number => Math.floor(Date.now() / 1000)
