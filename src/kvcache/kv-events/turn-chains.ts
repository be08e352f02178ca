import { LRUCache } from 'lru-cache'
import type { BlockHash, BlocksReported, KvEvent } from './decode-events.ts'

type Chain = Pick<BlocksReported, 'hashes' | 'tokens' | 'blockTokens'>

const bytesPerToken = Uint32Array.BYTES_PER_ELEMENT
/** Upper estimates, in a list and in a set. `make bench-kv-events` prints the memory in use beside the sum. */
const bytesPerHash = 128
const bytesPerChain = 1_024

/** The chains of blocks that turns filled or reused in one engine, and which of these blocks the engine still holds. */
export interface TurnChains {
  /** Takes in an event of the engine. */
  apply(event: KvEvent): void
  /** Tokens of the turn's longest reported chain. They stay when the engine drops its blocks. */
  tokens(turnId: string): Uint32Array | undefined
  /** Leading tokens of that chain that the engine holds. 0 where it is unknown. */
  residentTokens(turnId: string): number
  /** Events were missed: what the engine holds is unknown until it is reported again. The chains stay. */
  forgetResident(): void
  /** Estimate of the memory in use, never above the limit. */
  readonly bytes: number
}

/** @param maxBytes Half is for chains (the least recently used go first), half for the blocks that the engine holds. */
export const createTurnChains = (maxBytes: number): TurnChains => {
  const chains = new LRUCache<string, Chain>({
    maxSize: Math.floor(maxBytes / 2),
    sizeCalculation: ({ hashes, tokens }) =>
      bytesPerChain + hashes.length * bytesPerHash + tokens.length * bytesPerToken,
  })
  // The blocks reported the longest time ago come first.
  const resident = new Set<BlockHash>()
  const maxResident = Math.floor(maxBytes / 2 / bytesPerHash)

  const setResident = (hashes: readonly BlockHash[]): void => {
    for (const hash of hashes) {
      resident.delete(hash)
      resident.add(hash)
    }
    for (const oldest of resident) {
      if (resident.size <= maxResident) return
      resident.delete(oldest)
    }
  }

  const extend = (event: BlocksReported): void => {
    const { turnId, after, hashes, blockTokens } = event
    const known = chains.get(turnId)
    const at = after === undefined ? 0 : (known?.hashes.lastIndexOf(after) ?? -1) + 1
    // The blocks before these were missed, or are blocks of another size.
    if (after !== undefined && (at === 0 || known?.blockTokens !== blockTokens)) return
    setResident(hashes)
    if (known !== undefined && known.hashes.length >= at + hashes.length) return
    const tokens = new Uint32Array((at + hashes.length) * blockTokens)
    if (known !== undefined) tokens.set(known.tokens.subarray(0, at * blockTokens))
    tokens.set(event.tokens, at * blockTokens)
    chains.set(turnId, { hashes: [...(known?.hashes.slice(0, at) ?? []), ...hashes], tokens, blockTokens })
  }

  return {
    apply: (event) => {
      switch (event.kind) {
        case 'reported':
          extend(event)
          break
        case 'removed':
          for (const hash of event.hashes) resident.delete(hash)
          break
        case 'cleared':
          resident.clear()
      }
    },
    tokens: (turnId) => chains.get(turnId)?.tokens,
    residentTokens: (turnId) => {
      const chain = chains.get(turnId)
      if (chain === undefined) return 0
      const missing = chain.hashes.findIndex((hash) => !resident.has(hash))
      return (missing === -1 ? chain.hashes.length : missing) * chain.blockTokens
    },
    forgetResident: () => resident.clear(),
    get bytes(): number {
      return chains.calculatedSize + resident.size * bytesPerHash
    },
  }
}
