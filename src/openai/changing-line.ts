import type { SlicedWork } from '../async/slices.ts'
import { findBytes } from './find-bytes.ts'
import { maxMarkedBytes } from './prompt-marks.ts'

const system = Buffer.from('"system"')
const line = Buffer.from('"x-anthropic-billing-header:')
const quote = Buffer.from('"')
const blank = 0x20

/**
 * Blanks out, in place, the line with a hash that Claude Code puts in front of its system prompt, another one with every
 * request: no engine that keeps the line would find the prompt's beginning again. `deploy/envoy/session-names.lua` does
 * the same. In slices.
 */
export function* blankChangingLine(messagesBody: Buffer): SlicedWork<void> {
  const body = messagesBody.subarray(0, maxMarkedBytes)
  const from = yield* findBytes(body, system)
  const start = from === -1 ? -1 : yield* findBytes(body, line, from)
  const end = start === -1 ? -1 : yield* findBytes(body, quote, start + line.length)
  if (end !== -1) body.fill(blank, start + line.length, end)
}
