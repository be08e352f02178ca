// How a conversation becomes text. All interfaces write it in the same way, and what a client appends to its history is
// appended to the text: a turn's prompt begins with the last turn's prompt and answer.
import { z } from 'zod'
import type { ChatMessage } from './llama-runtime.ts'

/** One content part of any interface. */
type Part = Readonly<Record<string, unknown>>

const part = z.record(z.string(), z.unknown())

/** A text, or the parts that make it. */
export const content = z.union([z.string(), z.array(part)])

/** Parts without text of their own, such as images, leave their type. */
export const contentText = (value: z.infer<typeof content>, partText: (part: Part) => string = textOf): string =>
  typeof value === 'string' ? value : value.map(partText).join('')

/** The text of a part; else its type in brackets. */
export const textOf = ({ type, text, refusal }: Part): string => {
  const own = text ?? refusal
  return typeof own === 'string' ? own : `[${typeof type === 'string' ? type : 'part'}]`
}

/** A call that the assistant made. `input`: JSON, or a text that should be JSON. */
export const callText = (name: unknown, input: unknown): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`

/** Tools stand in the system message, behind its text, so that they are in front of all that changes. */
export const withTools = (messages: readonly ChatMessage[], tools: readonly unknown[]): readonly ChatMessage[] => {
  if (tools.length === 0) return messages
  const list = `# Tools\n${tools.map((tool) => JSON.stringify(tool)).join('\n')}`
  const [first, ...others] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: list }, ...messages]
  return [{ role: 'system', content: `${first.content}\n\n${list}` }, ...others]
}

/** Templates know no developers. */
export const templateRole = (role: string): string => (role === 'developer' ? 'system' : role)
