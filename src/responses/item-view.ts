import type { HistoryItem } from './response-history.ts'

/** An item as OpenAI's API lists it: with its id, and with a message's content as a list of parts. */
export const viewItem = ({ id, json }: HistoryItem): Readonly<Record<string, unknown>> => {
  const item = JSON.parse(json)
  const { type = 'message', role, content, status = 'completed' } = item
  if (type !== 'message') return withStatus.has(type) ? { ...item, id, status } : { ...item, id }
  return { ...item, id, type, status, content: typeof content === 'string' ? [partOf(role, content)] : content }
}

const withStatus: ReadonlySet<unknown> = new Set(['function_call', 'function_call_output'])

const partOf = (role: unknown, text: string) =>
  role === 'assistant' ? { type: 'output_text', text, annotations: [] } : { type: 'input_text', text }
