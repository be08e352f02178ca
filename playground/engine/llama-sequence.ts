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

/** The tokens that a slot's KV holds. Its methods may run at the same time on different sequences, never on one. */
export interface TokenSequence {
  tokens(): readonly number[]
  tokenCount(): number
  /** Drops what is behind the first `count` tokens. Resolves to how many are left: fewer, where the model cannot go back so far. */
  truncate(count: number): Promise<number>
  /** Appends a piece of a prompt. */
  append(tokens: readonly number[]): Promise<void>
  /** Appends `token` and yields the tokens that follow, each appended when the next one is asked for, until the answer ends. */
  generate(token: number, sampling: Sampling): AsyncGenerator<number, void, undefined>
  /** Drops everything, whatever state the KV is in. */
  clear(): Promise<void>
  /** Writes tokens and KV to a file. Resolves to its size in bytes. */
  save(path: string): Promise<number>
  /** Replaces tokens and KV by those of a file that `save` wrote. On an error the sequence is empty. */
  load(path: string): Promise<void>
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

/** Takes a sequence; `gate` is shared by all sequences of a context, `options` go with every token that is chosen. */
export const createLlamaSequence = (
  getSequence: () => LlamaSequence,
  gate: StepGate,
  options: object,
): TokenSequence => {
  let sequence = getSequence()

  // After a failed call the library's notion of the tokens and the KV may differ. A sequence taken anew is empty.
  const renew = async () => {
    await sequence.dispose()
    sequence = getSequence()
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
    async *generate(token, sampling) {
      const tokens = sequence.evaluate([token], { ...sampling, ...options })
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
    clear: () => gate.exclusive(renew),
    save: (path) => gate.exclusive(async () => (await sequence.saveStateToFile(path)).fileSize),
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
