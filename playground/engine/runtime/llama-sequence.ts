import type { Sampling, TokenSequence } from './inference-runtime.ts'
import type { LlamaContext, LlamaSequence, LlamaTokenBias } from './llama-module.ts'
import type { StepGate } from './step-gate.ts'

/**
 * Takes one of the context's sequences; `gate` is shared by all of them. `bias`, if given, applies to every token
 * chosen.
 */
export function createLlamaSequence(
  context: LlamaContext,
  gate: StepGate,
  bias: LlamaTokenBias | undefined,
): TokenSequence {
  let sequence: LlamaSequence = context.getSequence()

  // After a failed call the library's notion of the tokens and the KV itself may differ. A sequence taken anew is
  // certainly empty.
  const renew = async () => {
    await sequence.dispose()
    sequence = context.getSequence()
  }

  return {
    tokens: () => sequence.contextTokens,
    tokenCount: () => sequence.nextTokenIndex,
    truncate: (count) =>
      gate.exclusive(async () => {
        await sequence.adaptStateToTokens(sequence.contextTokens.slice(0, count), false)
        return sequence.nextTokenIndex
      }),
    append: (tokens) => gate.step(() => sequence.evaluateWithoutGeneratingNewTokens(tokens)),
    generate: (token, sampling) => generateThroughGate(sequence, gate, { token, sampling, bias }),
    clear: () => gate.exclusive(renew),
    save: (path) =>
      gate.exclusive(async () => {
        await sequence.saveStateToFile(path)
      }),
    load: (path) =>
      gate.exclusive(async () => {
        // The state of an empty sequence, once loaded, would leave the KV that is there where it is.
        await renew()
        try {
          await sequence.loadStateFromFile(path, { acceptRisk: true })
        } catch (error) {
          await renew()
          throw error
        }
      }),
  }
}

interface GenerationStart {
  readonly token: number
  readonly sampling: Sampling
  readonly bias: LlamaTokenBias | undefined
}

async function* generateThroughGate(sequence: LlamaSequence, gate: StepGate, start: GenerationStart) {
  const tokenBias = start.bias === undefined ? {} : { tokenBias: start.bias }
  const tokens = sequence.evaluate([start.token], { ...start.sampling, ...tokenBias })
  try {
    for (;;) {
      const next = await gate.step(() => tokens.next())
      if (next.done === true) return
      yield next.value
    }
  } finally {
    await tokens.return()
  }
}
