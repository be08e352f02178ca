import type { StoredKv } from '../../sessions/session-record.ts'
import type { KvPresence, KvTurn } from '../kv-connector.ts'
import type { SlotTurn } from '../slots/slot-ledger.ts'
import { parsePayload } from './artefact.ts'
import type { IntactFile } from './artefact-files.ts'
import { type Parts, releaseAfter, releaseSlot } from './parts.ts'

/** A turn that looks for a slot. */
export interface Search {
  readonly turn: KvTurn
  readonly kv: StoredKv | undefined
  readonly signal: AbortSignal
  readonly startedMs: number
}

export type FillOutcome =
  /** The turn can use the slot. Unless `presence` is a load, it must not reuse what lies there. */
  | { readonly kind: 'ready'; readonly presence: KvPresence }
  /** The slot is released, or will be when the engine has answered. */
  | { readonly kind: 'unusable'; readonly presence: KvPresence }
  /** Something else runs in the slot, which the turn still holds. */
  | { readonly kind: 'taken' }

/** Loads the session's stored KV, if there is any that this engine can load, into a slot that the turn holds. */
export const fillSlot = async (
  parts: Parts,
  search: Search,
  { place, fingerprint }: { readonly place: SlotTurn; readonly fingerprint: string },
): Promise<FillOutcome> => {
  const { turn, kv, signal } = search
  if (kv === undefined) return { kind: 'ready', presence: { kind: 'empty' } }
  const artefact = parsePayload(kv.payload)
  if (artefact?.fingerprint !== fingerprint) return { kind: 'ready', presence: { kind: 'incompatible' } }
  if (turn.mayLoad === false) return { kind: 'ready', presence: { kind: 'not-worthwhile' } }
  try {
    const opened = await parts.files.open(artefact, signal)
    if (typeof opened !== 'string') return await loadFile(parts, search, { place, opened })
    parts.log.info('stored KV cannot be loaded', { pod: place.pod, artefact: kv.artefactId, why: opened })
    return { kind: 'ready', presence: { kind: 'missing' } }
  } catch (cause) {
    return { kind: 'ready', presence: { kind: 'failed', cause } }
  }
}

/** An engine takes a load into a busy slot and does it whenever the slot becomes idle, so the slot is looked at right before. */
const loadFile = async (
  parts: Parts,
  { turn, kv, signal, startedMs }: Search,
  { place, opened }: { readonly place: SlotTurn; readonly opened: IntactFile },
): Promise<FillOutcome> => {
  const view = await parts.engines.look(place.pod, signal)
  const seen = view.kind === 'answered' ? view.value.slots.find(({ id }) => id === place.slot) : undefined
  if (view.kind === 'failed' || signal.aborted || seen === undefined || seen.busy) {
    await opened.close()
    if (view.kind === 'answered' && !signal.aborted) return { kind: 'taken' }
    return unusable(parts, place, view.kind === 'failed' ? view.cause : signal.reason)
  }
  const end = await parts.client.restore(place, opened.file)
  if (end.kind === 'late') {
    releaseAfter(
      parts,
      place,
      end.end.finally(() => opened.close()),
    )
    return { kind: 'unusable', presence: { kind: 'timed-out' } }
  }
  await opened.close()
  switch (end.kind) {
    case 'done': {
      const { slot, tokens } = end.value
      const loadMs = Math.round(performance.now() - startedMs)
      if (slot === place.slot && tokens === kv?.tokens)
        return { kind: 'ready', presence: { kind: 'loaded', tokens, loadMs } }
      return { kind: 'ready', presence: failed('another number of tokens was loaded than stored') }
    }
    case 'refused':
      return { kind: 'ready', presence: end.status === 400 ? { kind: 'missing' } : failed(end.cause) }
    case 'unsent':
      return unusable(parts, place, end.cause)
    case 'unknown':
      // The engine has probably died; should it live, it may still load, until the lease ends.
      parts.claims.drop(turn.turnId)
      return { kind: 'unusable', presence: failed(end.cause) }
  }
}

const unusable = async (parts: Parts, place: SlotTurn, cause: unknown): Promise<FillOutcome> => {
  await releaseSlot(parts, place)
  return { kind: 'unusable', presence: failed(cause) }
}

const failed = (cause: unknown): KvPresence => ({ kind: 'failed', cause })
