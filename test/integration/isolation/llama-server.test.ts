import { randomModelPath } from '../../../playground/engine/random-model.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaServer } from '../../support/start-llama-server.ts'
import { model } from '../support/client.ts'
import { describeReplays } from './replayed-conversations.ts'

describeReplays('real llama-server', async (kvDirectory) => [
  await startLlamaServer({
    name: 'pod-0',
    kvDirectory,
    slots: 2,
    contextTokensPerSlot: 4096,
    modelPath: await randomModelPath(`${toolsDir()}/models`),
    modelNames: [model],
    // Random weights would answer with bytes that are no text; JSON cannot carry them.
    extraArguments: ['--grammar', 'root ::= [a-z ,.]+'],
  }),
])
