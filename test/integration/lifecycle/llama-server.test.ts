import { jest } from '@jest/globals'
import { randomModelPath } from '../../../playground/engine/random-model.ts'
import { findLlamaServer } from '../../../playground/install/find-llama-server.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaPods } from '../../../playground/start-llama-server.ts'
import { model } from '../support/client.ts'
import { allFlows, describeConversations } from './conversations-suite.ts'

jest.setTimeout(30_000)

const tool = await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: console.log })

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
        tool,
        count: 2,
        modelPath: await randomModelPath(`${toolsDir()}/models`),
        modelAlias: model,
        slotSavePath: kvDirectory,
        slots: 4,
        contextTokensPerSlot: 4096,
        // Random weights would answer with bytes that are no text; JSON cannot carry them.
        extraArguments: ['--grammar', 'root ::= [a-z ,.]+'],
      }),
  },
)
