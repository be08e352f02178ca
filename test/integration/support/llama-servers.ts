import { randomModelPath } from '../../../playground/engine/random-model.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaServer } from '../../support/start-llama-server.ts'
import { model } from './client.ts'
import type { StackPod } from './stack.ts'

/** Real llama-servers with a model of random weights: one for each list of arguments of its own. */
export const llamaServers =
  (extraArguments: readonly (readonly string[])[], options: { readonly slots?: number } = {}) =>
  async (kvDirectory: string): Promise<readonly StackPod[]> => {
    const modelPath = await randomModelPath(`${toolsDir()}/models`)
    const started: StackPod[] = []
    for (const [index, own] of extraArguments.entries()) {
      const server = await startLlamaServer({
        ...options,
        name: `pod-${index}`,
        kvDirectory,
        modelPath,
        modelNames: [model],
        contextTokensPerSlot: 4096,
        // Random weights would answer with bytes that are no text; JSON cannot carry them.
        extraArguments: ['--grammar', 'root ::= [a-z ,.]+', ...own],
      })
      started.push(server)
    }
    return started
  }
