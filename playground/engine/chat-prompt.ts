// The messages of /v1/chat/completions.
import { z } from 'zod'
import { type Body, optional, readFields } from './body-fields.ts'
import type { ChatMessage } from './llama-runtime.ts'
import { callText, content, contentText, templateRole, withTools } from './prompt-text.ts'

const schema = z.object({
  messages: z
    .array(
      z.object({
        role: z.string(),
        content: optional(content, ''),
        tool_calls: optional(z.array(z.looseObject({ function: z.record(z.string(), z.unknown()).optional() })), []),
      }),
    )
    .min(1),
  tools: optional(z.array(z.unknown()), []),
})

/** @throws EngineError */
export const readChatPrompt = (body: Body): readonly ChatMessage[] => {
  const { messages, tools } = readFields(schema, body)
  const shown = messages.map((message) => ({
    role: templateRole(message.role),
    content: [contentText(message.content), ...message.tool_calls.map(toolCall)].join(''),
  }))
  return withTools(shown, tools)
}

/** Calls of other kinds than functions have their input under that kind. */
const toolCall = (call: Readonly<Record<string, unknown>>): string => {
  const called = z
    .looseObject({ name: z.unknown(), arguments: z.unknown() })
    .safeParse(call['function'] ?? call['custom'])
  return called.success
    ? callText(called.data.name, called.data.arguments ?? called.data['input'])
    : JSON.stringify(call)
}
