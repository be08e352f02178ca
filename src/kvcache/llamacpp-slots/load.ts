import type { KvPresence, StartingTurn } from '../kv-connector.ts'
import type { KvMissReason } from '../reasons.ts'
import type { SlotTurn } from '../slots/slot-ledger.ts'
import { parsePayload } from './artefact.ts'
import type { IntactFile } from './artefact-files.ts'
import type { Parts } from './parts.ts'

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
 * lies there. `taken`: something else runs in the slot. Goes on after `signal` has fired, for as long as the engine may act on the slot.
 * @throws when nobody knows whether the engine has loaded
 */
export const loadArtefact = async (parts: Parts, empty: EmptySlot): Promise<KvPresence | 'taken'> => {
  const { turn, place, fingerprint, signal } = empty
  const { stored, mayLoad } = turn
  if (stored === undefined) return miss('nothing_stored')
  const artefact = parsePayload(stored.payload)
  if (artefact?.fingerprint !== fingerprint) return miss('kv_incompatible')
  if (!mayLoad) return miss('load_too_slow')
  const opened = await parts.files.open(artefact, signal).catch((cause: unknown) => ({ cause }))
  if (typeof opened === 'string') {
    parts.log.info('stored KV cannot be loaded', { pod: place.pod, artefact: stored.artefactId, why: opened })
    return { kind: 'miss', reason: 'kv_missing', gone: true }
  }
  if ('cause' in opened) return miss('load_failed', opened.cause)
  // An engine takes a load into a busy slot and does it whenever the slot becomes idle: a look right before shows who runs there.
  const slots = await parts.engines.look(place.pod, signal).then(
    (view) => view.slots,
    () => [],
  )
  const seen = slots.find(({ id }) => id === place.slot)
  if (seen === undefined || seen.busy || signal.aborted) {
    await opened.close()
    return 'taken'
  }
  return restore(parts, empty, { opened, tokens: stored.tokens })
}

const restore = async (
  parts: Parts,
  { place, startedMs }: EmptySlot,
  { opened, tokens }: { readonly opened: IntactFile; readonly tokens: number },
): Promise<KvPresence> => {
  const end = await parts.client.restore(place, opened.file)
  await opened.close()
  switch (end.kind) {
    case 'done': {
      const isWhole = end.value.slot === place.slot && end.value.tokens === tokens
      if (!isWhole) return miss('load_failed', new Error('another number of tokens was loaded than stored'))
      return { kind: 'hit', tier: 'store', tokens, loadMs: Math.round(performance.now() - startedMs) }
    }
    case 'refused':
    case 'unsent':
      return miss('load_failed', end.cause)
    case 'unknown':
      // The engine has probably died; should it live, it may still load until the lease ends.
      parts.claims.drop(place.turnId)
      throw new Error('the load broke off', { cause: end.cause })
  }
}

const miss = (reason: KvMissReason, cause?: unknown): KvPresence => ({
  kind: 'miss',
  reason,
  ...(cause === undefined ? {} : { cause }),
})
