// The input of /v1/responses: a text, or items of many types. An item of an unknown type is shown as it is.
import { z } from 'zod'
import { type Body, optional, readFields } from './body-fields.ts'
import type { ChatMessage } from './llama-runtime.ts'
import { callText, content, contentText, templateRole, withTools } from './prompt-text.ts'

type Item = Readonly<Record<string, unknown>>

const schema = z.object({
  input: z.union([
    z.string().transform((text) => [{ role: 'user', content: text }]),
    z.array(z.record(z.string(), z.unknown())).min(1),
  ]),
  instructions: optional(z.string(), ''),
  tools: optional(z.array(z.unknown()), []),
})

/** @throws EngineError */
export const readResponsesPrompt = (body: Body): readonly ChatMessage[] => {
  const { input, instructions, tools } = readFields(schema, body)
  const system = instructions === '' ? [] : [{ role: 'system', content: instructions }]
  return withTools([...system, ...input.map(shown)], tools)
}

const shown = (item: Item): ChatMessage => {
  const { type, role } = item
  if (typeof role === 'string') return { role: templateRole(role), content: textIn(item['content']) }
  if (typeof type !== 'string') return { role: 'user', content: JSON.stringify(item) }
  // function_call, custom_tool_call, local_shell_call, web_search_call, …
  if (type.endsWith('_call')) {
    const input = item['arguments'] ?? item['input'] ?? item['action']
    return { role: 'assistant', content: callText(item['name'] ?? type, input) }
  }
  if (type.endsWith('_output')) return { role: 'tool', content: textIn(item['output']) }
  if (type === 'reasoning') return { role: 'assistant', content: textIn(item['content'] ?? item['summary']) }
  return { role: 'user', content: JSON.stringify(item) }
}

const textIn = (value: unknown): string => {
  const { data } = content.safeParse(value ?? '')
  return data === undefined ? JSON.stringify(value) : contentText(data)
}
