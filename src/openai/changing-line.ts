const system = Buffer.from('"system"')
const line = Buffer.from('"x-anthropic-billing-header:')
const quote = 0x22
const blank = 0x20

/**
 * Blanks out, in place, the line with a hash that Claude Code puts in front of its system prompt, another one with every
 * request: no engine that keeps the line would find the prompt's beginning again. `deploy/envoy/session-names.lua` does
 * the same.
 */
export const blankChangingLine = (messagesBody: Buffer): void => {
  const from = messagesBody.indexOf(system)
  const start = from === -1 ? -1 : messagesBody.indexOf(line, from)
  const end = start === -1 ? -1 : messagesBody.indexOf(quote, start + line.length)
  if (end !== -1) messagesBody.fill(blank, start + line.length, end)
}
