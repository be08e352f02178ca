// A sequence without a model for tests: its KV is the list of its tokens, its file that list as JSON, its answer a
// script.
import { readFile, writeFile } from 'node:fs/promises'
import type { Sampling, TokenSequence } from '../../../../../playground/engine/runtime/inference-runtime.ts'

export interface ScriptedSequence extends TokenSequence {
  /** What was done to the sequence, in order. */
  readonly calls: string[]
}

export interface Script {
  /** Tokens of every answer; the model ends it after the last one. */
  readonly answer?: readonly number[]
  /** Called before each token of the answer. */
  readonly beforeToken?: (index: number) => void
  /** How many tokens the KV holds of a file that says otherwise. */
  readonly loadedCount?: number
}

export function createScriptedSequence(script: Script = {}): ScriptedSequence {
  let held: readonly number[] = []
  const calls: string[] = []
  async function* generate(token: number, _sampling: Sampling) {
    calls.push(`generate from ${token}`)
    let last = token
    for (const [index, next] of (script.answer ?? []).entries()) {
      script.beforeToken?.(index)
      held = [...held, last]
      yield next
      last = next
    }
  }
  return {
    calls,
    generate,
    tokens: () => held,
    tokenCount: () => held.length,
    async truncate(count) {
      calls.push(`truncate ${count}`)
      held = held.slice(0, count)
      return held.length
    },
    async append(tokens) {
      calls.push(`append ${tokens.length}`)
      held = [...held, ...tokens]
    },
    async clear() {
      calls.push('clear')
      held = []
    },
    save: (path) => writeFile(path, JSON.stringify(held)),
    async load(path) {
      const text = await readFile(path, 'utf8')
      held = JSON.parse(text.slice(0, text.indexOf(']') + 1))
      held = held.slice(0, script.loadedCount ?? held.length)
    },
  }
}
