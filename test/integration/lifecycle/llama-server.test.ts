import { randomModelPath } from '../../../playground/engine/random-model.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaServer } from '../../support/start-llama-server.ts'
import { model } from '../support/client.ts'
import { allFlows, describeConversations } from './conversations-suite.ts'

describeConversations(
  // The gateway's part in the other APIs is the same on every engine, and tested on the embedded one.
  {
    name: 'real llama-server',
    countsEveryStream: true,
    flows: allFlows.filter(({ api }) => api.name === 'chat completions'),
  },
  {
    pods: async (kvDirectory) => {
      const options = {
        kvDirectory,
        modelPath: await randomModelPath(`${toolsDir()}/models`),
        modelNames: [model],
        contextTokensPerSlot: 4096,
        // Random weights would answer with bytes that are no text; JSON cannot carry them.
        extraArguments: ['--grammar', 'root ::= [a-z ,.]+'],
      }
      const start = (name: string) => startLlamaServer({ ...options, name })
      return [await start('pod-0'), await start('pod-1')]
    },
  },
)
