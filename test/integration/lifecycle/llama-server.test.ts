import { describe, jest, test } from '@jest/globals'
import { ensureRandomModel } from '../../../src/engine/gguf/ensure-random-model.ts'
import { defaultRandomModel } from '../../../src/engine/gguf/random-model.ts'
import { findLlamaServer } from '../../../src/launcher/find-llama-server.ts'
import { requireTool } from '../../../src/launcher/server-tool.ts'
import { startLlamaPods } from '../../../src/launcher/start-llama-server.ts'
import { packageRoot, toolsDir } from '../../../src/launcher/tools-dir.ts'
import { model } from '../support/client.ts'
import { describeConversations } from './conversations-suite.ts'

jest.setTimeout(30_000)

const llama = await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: console.log })

if (llama.found) {
  describeConversations(
    { name: 'real llama-server', countsEveryStream: true },
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
