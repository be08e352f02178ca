// The conversation of /v1/messages, Anthropic's interface.
import { z } from 'zod'
import { type Body, optional, readFields } from './body-fields.ts'
import type { ChatMessage } from './llama-runtime.ts'
import { callText, content, contentText, templateRole, textOf, withTools } from './prompt-text.ts'

const schema = z.object({
  system: optional(content, ''),
  messages: z.array(z.object({ role: z.string(), content: optional(content, '') })).min(1),
  tools: optional(z.array(z.unknown()), []),
})

/** A line of Claude Code that differs in every request; vLLM leaves it out, too. */
const billingLine = 'x-anthropic-billing-header:'

/** @throws EngineError */
export const readMessagesPrompt = (body: Body): readonly ChatMessage[] => {
  const { system, messages, tools } = readFields(schema, body)
  const blocks = typeof system === 'string' ? [{ text: system }] : system
  const [first] = blocks
  const isBilled = first !== undefined && textOf(first).startsWith(billingLine)
  const instructions = contentText(isBilled ? blocks.slice(1) : blocks)
  const shown = messages.map((message) => ({
    role: templateRole(message.role),
    content: contentText(message.content, blockText),
  }))
  return withTools([...(instructions === '' ? [] : [{ role: 'system', content: instructions }]), ...shown], tools)
}

const blockText = (block: Readonly<Record<string, unknown>>): string => {
  switch (block['type']) {
    case 'tool_use':
      return callText(block['name'], block['input'])
    case 'tool_result': {
      const { data = '' } = content.safeParse(block['content'])
      return `<tool_response>\n${contentText(data)}\n</tool_response>`
    }
    // Thoughts are not sent back in every turn.
    case 'thinking':
    case 'redacted_thinking':
      return ''
    default:
      return textOf(block)
  }
}
