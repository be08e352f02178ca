import type { StepGate } from './step-gate.ts'

/** How the next token is chosen. */
export interface Sampling {
  /** 0 takes the likeliest token. */
  readonly temperature: number
  readonly topP: number
  /** 0 means all. */
  readonly topK: number
  readonly minP: number
  /** Unsigned 32-bit. */
  readonly seed: number
}

/** One sequence of node-llama-cpp, as far as it is used here. */
export interface LlamaSequence {
  readonly nextTokenIndex: number
  readonly contextTokens: number[]
  adaptStateToTokens(tokens: readonly number[], allowShift: boolean): Promise<void>
  evaluateWithoutGeneratingNewTokens(tokens: readonly number[]): Promise<void>
  evaluate(tokens: readonly number[], options: object): AsyncGenerator<number, void, undefined>
  saveStateToFile(path: string): Promise<{ fileSize: number }>
  loadStateFromFile(path: string, risk: { acceptRisk: true }): Promise<void>
  dispose(): Promise<void>
}

/**
 * The tokens that a slot's KV holds. The methods may run at the same time on different sequences, never on one. `gate`
 * is shared by all sequences of a context, `answerOptions` are those of an answer that follows the token.
 */
export const createTokenSequence = (
  getSequence: () => LlamaSequence,
  gate: StepGate,
  answerOptions: (lastToken: number) => object,
) => {
  let sequence = getSequence()

  // After a failed call the library's notion of the tokens and the KV may differ. A sequence taken anew is empty.
  const renew = async () => {
    await sequence.dispose()
    sequence = getSequence()
  }

  return {
    tokens: (): readonly number[] => sequence.contextTokens,
    tokenCount: (): number => sequence.nextTokenIndex,
    /** Keeps the first `count` tokens. Resolves to how many are left: fewer, where the model cannot go back so far. */
    truncate: (count: number): Promise<number> =>
      gate.exclusive(async () => {
        await sequence.adaptStateToTokens(sequence.contextTokens.slice(0, count), false)
        return sequence.nextTokenIndex
      }),
    /** Appends a piece of a prompt. */
    append: (tokens: readonly number[]): Promise<void> =>
      gate.step(() => sequence.evaluateWithoutGeneratingNewTokens(tokens)),
    /** Appends `token` and yields those that follow, each appended when the next is asked for, to the answer's end. */
    async *generate(token: number, sampling: Sampling): AsyncGenerator<number, void, undefined> {
      const tokens = sequence.evaluate([token], { ...sampling, ...answerOptions(token) })
      try {
        for (;;) {
          const next = await gate.step(() => tokens.next())
          if (next.done === true) return
          yield next.value
        }
      } finally {
        await tokens.return()
      }
    },
    /** Drops everything, whatever state the KV is in. */
    clear: (): Promise<void> => gate.exclusive(renew),
    /** Writes tokens and KV to a file. Resolves to its size in bytes. */
    save: (path: string): Promise<number> =>
      gate.exclusive(async () => (await sequence.saveStateToFile(path)).fileSize),
    /** Replaces tokens and KV by those of a file that `save` wrote. On an error the sequence is empty. */
    load: (path: string): Promise<void> =>
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

export type TokenSequence = ReturnType<typeof createTokenSequence>
