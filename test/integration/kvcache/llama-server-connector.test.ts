import { afterAll, beforeAll, describe, jest } from '@jest/globals'
import { findLlamaServer } from '../../../playground/install/find-llama-server.ts'
import { requireTool } from '../../../playground/install/find-tool.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaServer } from '../../../playground/start-llama-server.ts'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { describeKvConnector } from '../../contract/kvcache/kv-connector-suite.ts'
import { describeKvRemoval } from '../../contract/kvcache/kv-removal-suite.ts'
import { describeSlots } from './slots-suite.ts'
import { contextTokensPerSlot, type SlotEngines, slotsPerPod, startSlotEngines } from './slots-test-bed.ts'
import { describeStorm } from './storm.ts'

jest.setTimeout(60_000)

describe('real llama-server', () => {
  let engines: SlotEngines
  beforeAll(async () => {
    const tool = requireTool(await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: console.log }))
    engines = await startSlotEngines(async ({ port, modelPath, kvDirectory }) => {
      const server = await startLlamaServer({
        tool,
        modelPath,
        slotSavePath: kvDirectory,
        port,
        slots: slotsPerPod,
        contextTokensPerSlot,
      })
      return server.child
    })
  }, 300_000)
  afterAll(() => engines.end())

  const makeBed = () => engines.bed(async () => createMemorySlotLedger())
  describeKvConnector('llamacpp-slots', makeBed)
  describeKvRemoval('llamacpp-slots', makeBed)
  describeSlots(makeBed)
  describeStorm(makeBed)
})
