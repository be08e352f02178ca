import type { OffloadRequest } from '../kv-connector.ts'
import type { DirectoryEntry } from './lmcache-answers.ts'
import type { Parts } from './parts.ts'
import { objectKeysOf, type StoredPrefix } from './stored-prefix.ts'
import { untilGrown } from './until-grown.ts'

/** How much of a prefix lies in the store, from its beginning. */
export interface Arrived {
  readonly chunks: number
  readonly bytes: number
}

const pollMs = 50

/**
 * The engine writes chunks in the background. Those of the prompt are waited for, as long as more come; whether it writes those of its answer too
 * is its own setting, so they count when they have come by then. The first `known` chunks are the session's former artefact's: a coordinator that
 * was started anew no longer lists them, and an engine that finds them does not write them again.
 */
export const untilArrived = (
  parts: Parts,
  { promptTokens, signal }: OffloadRequest,
  prefix: { readonly stored: StoredPrefix; readonly known: number },
): Promise<Arrived> => {
  const { stored, known } = prefix
  const keys = objectKeysOf(stored, stored.chunks)
  const ofPrompt = promptTokens === undefined ? Number.POSITIVE_INFINITY : Math.floor(promptTokens / stored.chunkTokens)
  return untilGrown(
    async () => countArrived(await parts.lmcache.locate(keys, signal), { perChunk: stored.pieces.length, known }),
    ({ chunks }) => chunks,
    { expected: Math.min(ofPrompt, stored.chunks.length), quietMs: parts.limits.settleMs, pollMs },
    signal,
  )
}

const countArrived = (
  entries: readonly DirectoryEntry[],
  chunk: { readonly perChunk: number; readonly known: number },
): Arrived => {
  const sizes = entries.map(({ placements }) => placements.find(({ tier }) => tier === 'l2')?.size_bytes)
  const firstMissing = sizes.findIndex((size, piece) => size === undefined && piece >= chunk.known * chunk.perChunk)
  const chunks = Math.floor((firstMissing === -1 ? sizes.length : firstMissing) / chunk.perChunk)
  const listed = sizes.slice(0, chunks * chunk.perChunk).filter((size) => size !== undefined)
  const meanBytes = listed.length === 0 ? 0 : listed.reduce((sum, size) => sum + size, 0) / listed.length
  return { chunks, bytes: Math.round(meanBytes * chunks * chunk.perChunk) }
}
