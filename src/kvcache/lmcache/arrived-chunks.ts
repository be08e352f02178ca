import { setTimeout } from 'node:timers/promises'
import type { EndedTurn } from '../kv-connector.ts'
import type { Parts } from './parts.ts'
import { objectKeysOf, type StoredPrefix } from './stored-prefix.ts'

const pollMs = 50

type NamedChunks = Pick<StoredPrefix, 'modelRoot' | 'salt' | 'chunks' | 'pieces' | 'chunkTokens'>

/**
 * The engine writes chunks in the background. Waits for those of the prompt while more come; those of the answer count
 * if they are there then. All up to the last listed chunk are there, and the first `known`, the former artefact's,
 * which a restarted coordinator does not list. Resolves to how much is stored; when the signal fires, to how much was.
 * @throws when the signal fires before anything is found
 */
export const untilArrived = async (
  parts: { readonly lmcache: Pick<Parts['lmcache'], 'locate'>; readonly settleMs: number },
  { promptTokens, signal }: Pick<EndedTurn, 'promptTokens' | 'signal'>,
  { stored, known }: { readonly stored: NamedChunks; readonly known: number },
): Promise<{ readonly chunks: number; readonly bytes: number }> => {
  const perChunk = stored.pieces.length
  const ofPrompt = promptTokens === undefined ? Number.POSITIVE_INFINITY : Math.floor(promptTokens / stored.chunkTokens)
  const expected = Math.min(ofPrompt, stored.chunks.length)
  let chunks = known
  let found = { chunks: 0, bytes: 0 }
  let grewAtMs = performance.now()
  try {
    for (;;) {
      // A turn adds a few chunks to hundreds: only these are asked for, and the one before them, for its size.
      const from = Math.max(0, chunks - 1)
      const entries = await parts.lmcache.locate(objectKeysOf(stored, stored.chunks.slice(from)), signal)
      const sizes = entries.map(({ placements }) => placements.find(({ tier }) => tier === 'l2')?.size_bytes)
      const unknown = sizes.slice((chunks - from) * perChunk)
      const isWhole = (_chunk: string, at: number): boolean =>
        unknown.slice(at * perChunk, (at + 1) * perChunk).every((size) => size !== undefined)
      const grown = stored.chunks.slice(chunks).findLastIndex(isWhole) + 1
      chunks += grown
      if (grown > 0) grewAtMs = performance.now()
      const listed = sizes.slice(0, (chunks - from) * perChunk).filter((size) => size !== undefined)
      const meanBytes = listed.reduce((sum, size) => sum + size, 0) / Math.max(1, listed.length)
      found = { chunks, bytes: Math.round(meanBytes * chunks * perChunk) }
      if (chunks >= expected || performance.now() - grewAtMs > parts.settleMs) return found
      await setTimeout(pollMs, undefined, { signal })
    }
  } catch (fault) {
    // What arrives later counts at the end of the session's next turn.
    if (!signal.aborted || found.chunks === 0) throw fault
    return found
  }
}
