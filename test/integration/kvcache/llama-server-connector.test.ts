import { afterAll, beforeAll, describe, jest } from '@jest/globals'
import { findLlamaServer } from '../../../playground/launcher/find-llama-server.ts'
import { requireTool } from '../../../playground/launcher/server-tool.ts'
import { startLlamaServer } from '../../../playground/launcher/start-llama-server.ts'
import { toolsDir } from '../../../playground/launcher/tools-dir.ts'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { describeSlots } from './slots-suite.ts'
import { contextTokensPerSlot, type SlotEngines, slotsPerPod, startSlotEngines } from './slots-test-bed.ts'

jest.setTimeout(60_000)

const llama = await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: console.log })
if (!llama.found) console.log(`left out: ${llama.reason}`)

;(llama.found ? describe : describe.skip)('real llama-server', () => {
  let engines: SlotEngines
  beforeAll(async () => {
    engines = await startSlotEngines(async ({ port, modelPath, kvDirectory }) => {
      const server = await startLlamaServer({
        tool: requireTool(llama),
        modelPath,
        slotSavePath: kvDirectory,
        port,
        slots: slotsPerPod,
        contextTokensPerSlot,
      })
      return server.child
    })
  }, 120_000)
  afterAll(() => engines.end())

  // The connector's contract does not depend on the engine: it is tested on the embedded one, and here what depends on real slots.
  describeSlots(() => engines.bed(async () => createMemorySlotLedger()))
})
