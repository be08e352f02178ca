import { createStopMatcher } from '../prompt/stop-matcher.ts'
import { createUtf8Text } from '../prompt/utf8-text.ts'
import type { InferenceRuntime } from '../runtime/inference-runtime.ts'
import type { Slot } from '../slots/slot.ts'
import { commonPrefixLength } from '../slots/token-prefix.ts'
import type { GenerationEvent, GenerationRequest } from './generation.ts'

/**
 * Prompt tokens computed between two looks at the signal. Half of the runtime's batch, so that other slots' tokens fit
 * beside them.
 */
const pieceTokens = 256

/** Computes the answer in the slot, which the caller holds. */
export async function* runGeneration(
  slot: Slot,
  request: GenerationRequest,
  runtime: Pick<InferenceRuntime, 'tokenBytes'>,
): AsyncGenerator<GenerationEvent, void, undefined> {
  const { tokens, signal } = request
  const cachedTokens = await reusePrefix(slot, request)
  yield { kind: 'started', slotId: slot.id, cachedTokens }

  // The last token is always computed by itself: cold, reused or restored, the same numbers then choose the first token
  // of the answer.
  const lastIndex = tokens.length - 1
  for (let start = cachedTokens; start < lastIndex; start += pieceTokens) {
    if (signal.aborted) return
    await slot.sequence.append(tokens.slice(start, Math.min(start + pieceTokens, lastIndex)))
  }
  if (signal.aborted) return
  yield* answer(slot, request, runtime)
}

/** Makes the slot hold the longest prefix of the prompt that it has, except for the last token. Returns its length. */
async function reusePrefix(slot: Slot, { tokens, saltHash }: GenerationRequest): Promise<number> {
  const held = slot.saltHash === saltHash ? commonPrefixLength(slot.sequence.tokens(), tokens) : 0
  const keep = Math.min(held, tokens.length - 1)
  slot.saltHash = saltHash
  return keep === slot.sequence.tokenCount() ? keep : slot.sequence.truncate(keep)
}

async function* answer(
  slot: Slot,
  { tokens, maxTokens, sampling, stops, signal }: GenerationRequest,
  runtime: Pick<InferenceRuntime, 'tokenBytes'>,
): AsyncGenerator<GenerationEvent, void, undefined> {
  const characters = createUtf8Text()
  const matcher = createStopMatcher(stops)
  const lastToken = tokens.at(-1)
  if (lastToken === undefined) throw new Error('a prompt has at least one token')
  let count = 0
  for await (const token of slot.sequence.generate(lastToken, sampling)) {
    if (signal.aborted) return
    count += 1
    const { text, stopped } = matcher.push(characters.push(runtime.tokenBytes(token)))
    yield { kind: 'token', text }
    if (stopped) {
      yield { kind: 'finished', reason: 'stop', text: '' }
      return
    }
    if (count >= maxTokens) break
  }
  const { text, stopped } = matcher.push(characters.end())
  const rest = stopped ? text : text + matcher.end()
  yield { kind: 'finished', reason: count >= maxTokens && !stopped ? 'length' : 'stop', text: rest }
}
