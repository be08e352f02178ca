import type { KvMissReason, KvPresence, StartingTurn } from '../kv-port.ts'
import type { SlotTurn } from '../slots/slot-ledger.ts'
import { parsePayload } from './artefact.ts'
import type { IntactFile } from './artefact-files.ts'
import { type Parts, releaseAfter, releaseSlot } from './parts.ts'

/** A turn that holds a slot without KV of its session. */
export interface EmptySlot {
  readonly turn: StartingTurn
  readonly place: SlotTurn
  /** Of the engine. */
  readonly fingerprint: string
  readonly signal: AbortSignal
  readonly startedMs: number
}

/**
 * Loads the session's stored KV, if there is any that this engine can load. After a miss the turn can use the slot, but must not reuse what
 * lies there. `taken`: something else runs in the slot, which the turn still holds.
 * @throws when the slot cannot be used. It is released, or will be when the engine has answered.
 */
export const loadArtefact = async (parts: Parts, empty: EmptySlot): Promise<KvPresence | 'taken'> => {
  const { turn, place, fingerprint, signal } = empty
  const { stored, mayLoad } = turn
  if (stored === undefined) return miss('nothing_stored')
  const artefact = parsePayload(stored.payload)
  if (artefact?.fingerprint !== fingerprint) return miss('kv_incompatible')
  if (!mayLoad) return miss('load_too_slow')
  try {
    const opened = await parts.files.open(artefact, signal)
    if (typeof opened !== 'string') return await loadFile(parts, empty, { opened, tokens: stored.tokens })
    parts.log.info('stored KV cannot be loaded', { pod: place.pod, artefact: stored.artefactId, why: opened })
    return gone
  } catch (cause) {
    if (!(cause instanceof LateEngineError)) await releaseSlot(parts, place)
    throw cause
  }
}

/** The engine may still act on the slot, which stays held. */
class LateEngineError extends Error {
  override readonly name = 'LateEngineError'
}

/** An engine takes a load into a busy slot and does it whenever the slot becomes idle, so the slot is looked at right before. */
const loadFile = async (
  parts: Parts,
  { place, signal, startedMs }: EmptySlot,
  { opened, tokens }: { readonly opened: IntactFile; readonly tokens: number },
): Promise<KvPresence | 'taken'> => {
  const reading = { isLate: false }
  try {
    const { slots } = await parts.engines.look(place.pod, signal)
    const seen = slots.find(({ id }) => id === place.slot)
    if (seen === undefined || seen.busy) return 'taken'
    const end = await parts.client.restore(place, opened.file)
    switch (end.kind) {
      case 'done': {
        const isWhole = end.value.slot === place.slot && end.value.tokens === tokens
        if (!isWhole) return miss('load_failed', new Error('another number of tokens was loaded than stored'))
        return { kind: 'hit', tier: 'store', tokens, loadMs: Math.round(performance.now() - startedMs) }
      }
      case 'refused':
        return end.status === 400 ? gone : miss('load_failed', end.cause)
      case 'unsent':
        throw end.cause
      case 'late':
        reading.isLate = true
        releaseAfter(
          parts,
          place,
          end.end.finally(() => opened.close()),
        )
        throw new LateEngineError('the engine is late with loading KV')
      case 'unknown':
        // The engine has probably died; should it live, it may still load until the lease ends.
        parts.claims.drop(place.turnId)
        throw new LateEngineError('the load broke off', { cause: end.cause })
    }
  } finally {
    if (!reading.isLate) await opened.close()
  }
}

/** What is stored will never load. */
const gone: KvPresence = { kind: 'miss', reason: 'kv_missing', gone: true }

const miss = (reason: KvMissReason, cause?: unknown): KvPresence => ({
  kind: 'miss',
  reason,
  ...(cause === undefined ? {} : { cause }),
})
