import { describe, jest, test } from '@jest/globals'
import { ensureRandomModel } from '../../../playground/engine/gguf/ensure-random-model.ts'
import { defaultRandomModel } from '../../../playground/engine/gguf/random-model.ts'
import { findLlamaServer } from '../../../playground/launcher/find-llama-server.ts'
import { requireTool } from '../../../playground/launcher/server-tool.ts'
import { startLlamaPods } from '../../../playground/launcher/start-llama-server.ts'
import { packageRoot, toolsDir } from '../../../playground/launcher/tools-dir.ts'
import { model } from '../support/client.ts'
import { allFlows, describeConversations } from './conversations-suite.ts'

jest.setTimeout(30_000)

const llama = await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: console.log })

if (llama.found) {
  describeConversations(
    // The gateway's part in the other APIs is the same on every engine, and tested on the embedded one.
    {
      name: 'real llama-server',
      countsEveryStream: true,
      flows: allFlows.filter(({ api }) => api.name === 'chat completions'),
    },
    {
      pods: async (kvDirectory) =>
        startLlamaPods({
          tool: requireTool(llama),
          count: 2,
          modelPath: (await ensureRandomModel(`${packageRoot()}/.run/models`, defaultRandomModel)).path,
          modelAlias: model,
          slotSavePath: kvDirectory,
          slots: 4,
          contextTokensPerSlot: 4096,
          // Random weights would answer with bytes that are no text; JSON cannot carry them.
          extraArguments: ['--grammar', 'root ::= [a-z ,.]+'],
        }),
    },
  )
} else {
  console.log(`left out: ${llama.reason}`)
  describe.skip('real llama-server', () => {
    test('conversations', () => {})
  })
}
