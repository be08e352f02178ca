import { type ChunkKey, keyText } from './chunk-keys.ts'

/** Memory beside an engine (L1), or the store behind all of them (L2). */
export interface ChunkStore {
  /** Whether it lies there and can be read. */
  has(key: ChunkKey): boolean
  put(key: ChunkKey): void
  /** Whether there was anything. */
  delete(key: ChunkKey): boolean
  /** Makes what is stored under this name unreadable. */
  damage(key: ChunkKey): void
  keys(): readonly ChunkKey[]
  clear(): void
}

export const createChunkStore = (): ChunkStore => {
  const chunks = new Map<string, { readonly key: ChunkKey; readonly readable: boolean }>()
  return {
    has: (key) => chunks.get(keyText(key))?.readable === true,
    put: (key) => void chunks.set(keyText(key), { key, readable: true }),
    delete: (key) => chunks.delete(keyText(key)),
    damage: (key) => {
      if (chunks.has(keyText(key))) chunks.set(keyText(key), { key, readable: false })
    },
    keys: () => [...chunks.values()].map(({ key }) => key),
    clear: () => chunks.clear(),
  }
}
