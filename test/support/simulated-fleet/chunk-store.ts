import { type ChunkKey, keyText } from './chunk-keys.ts'

/** Memory beside an engine (L1), or the store behind all of them (L2). */
export interface ChunkStore {
  /** Whether it lies there and can be read. */
  has(key: ChunkKey): boolean
  put(key: ChunkKey): void
  /** Whether there was anything. */
  delete(key: ChunkKey): boolean
  /** How many were deleted so far. */
  deletions(): number
  /** Makes what is stored under this name unreadable. */
  damage(key: ChunkKey): void
  keys(): readonly ChunkKey[]
  clear(): void
}

export const createChunkStore = (): ChunkStore => {
  const chunks = new Map<string, { readonly key: ChunkKey; readonly readable: boolean }>()
  let deletions = 0
  return {
    has: (key) => chunks.get(keyText(key))?.readable === true,
    put: (key) => void chunks.set(keyText(key), { key, readable: true }),
    delete: (key) => {
      const wasThere = chunks.delete(keyText(key))
      if (wasThere) deletions += 1
      return wasThere
    },
    deletions: () => deletions,
    damage: (key) => {
      if (chunks.has(keyText(key))) chunks.set(keyText(key), { key, readable: false })
    },
    keys: () => [...chunks.values()].map(({ key }) => key),
    clear: () => chunks.clear(),
  }
}
