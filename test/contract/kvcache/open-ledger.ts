import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'

/** A ledger that tells who holds chunks. */
export interface OpenLedger extends ChunkLedger {
  readonly size: number
  names(): readonly string[]
}

export const createOpenLedger = (): OpenLedger => {
  const ledger = createMemoryChunkLedger()
  const names = new Set<string>()
  return {
    hold: (artefact) => {
      names.add(artefact.name)
      return ledger.hold(artefact)
    },
    release: (artefact) => {
      names.delete(artefact.name)
      return ledger.release(artefact)
    },
    get size() {
      return ledger.size
    },
    names: () => [...names],
  }
}
