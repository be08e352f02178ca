import { afterAll, beforeAll, describe, jest } from '@jest/globals'
import { findLlamaServer } from '../../../playground/install/find-llama-server.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaServer } from '../../../playground/start-llama-server.ts'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { describeSlots } from './slots-suite.ts'
import { contextTokensPerSlot, type SlotEngines, slotsPerPod, startSlotEngines } from './slots-test-bed.ts'

jest.setTimeout(60_000)

describe('real llama-server', () => {
  let engines: SlotEngines
  beforeAll(async () => {
    const tool = await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: console.log })
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

  // The connector's contract does not depend on the engine: it is tested on the embedded one, and here what depends on real slots.
  describeSlots(() => engines.bed(async () => createMemorySlotLedger()))
})
