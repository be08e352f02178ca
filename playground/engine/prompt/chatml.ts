// ChatML: each message stands between <|im_start|>role and <|im_end|>. What a message says is never read as a mark.
import type { ChatMessage } from './chat-message.ts'

/** A piece of a rendered conversation: marks may become special tokens, content is always plain text. */
export interface ChatmlSegment {
  readonly kind: 'mark' | 'content'
  readonly text: string
}

/** Renders the conversation and opens the assistant's next message. */
export function chatmlSegments(messages: readonly ChatMessage[]): readonly ChatmlSegment[] {
  const rendered = messages.flatMap(({ role, content }): ChatmlSegment[] => [
    { kind: 'mark', text: `<|im_start|>${role}\n` },
    { kind: 'content', text: content },
    { kind: 'mark', text: '<|im_end|>\n' },
  ])
  return [...rendered, { kind: 'mark', text: '<|im_start|>assistant\n' }]
}
