import type { StoredKv } from '../../sessions/session-record.ts'
import type { KvPresence, KvTurn } from '../kv-connector.ts'
import type { TouchedSlot } from '../slots/slot-client.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import { type Artefact, parsePayload } from './artefact.ts'
import type { OpenOutcome } from './artefact-depot.ts'
import { lookAtSlot, type SlotView } from './look.ts'
import type { Parts } from './parts.ts'
import { markOf } from './slot-evidence.ts'

/** What became of a slot that was to be made ready. */
export type FillOutcome =
  /** `task` is the last completion that had run there. */
  | { readonly kind: 'ready'; readonly presence: KvPresence; readonly task: number | undefined }
  /** Something else runs in the slot. It still belongs to the turn, and may hold anything. */
  | { readonly kind: 'taken' }
  /** The slot must not be used; it was let go. */
  | { readonly kind: 'unusable'; readonly presence: KvPresence }

export interface Filling {
  readonly turn: KvTurn
  readonly slot: number
  readonly kv: StoredKv | undefined
  readonly startedMs: number
  /** Fires when nobody waits any more: nothing new is begun then. */
  readonly signal: AbortSignal
}

/**
 * Makes a slot, of which this turn is the loader, hold the session's stored KV, or nothing. Looks at the slot immediately before it acts,
 * since an engine takes an action on a busy slot and carries it out whenever the slot becomes idle.
 */
export const fillSlot = async (parts: Parts, filling: Filling): Promise<FillOutcome> => {
  const { kv, signal, turn } = filling
  const artefact = kv === undefined ? undefined : parsePayload(kv.payload)
  const stored = await openStored(parts, turn.mayLoad === false && parts.depot.isRemote ? undefined : artefact, signal)
  if (stored.kind !== 'ready') return fillFrom(parts, filling, { artefact, stored, readers: [] })
  const readers: Promise<unknown>[] = []
  try {
    return await fillFrom(parts, filling, { artefact, stored, readers })
  } finally {
    if (readers.length === 0) await stored.close()
    else
      parts.background.run(
        'late reader',
        Promise.allSettled(readers).then(() => stored.close()),
      )
  }
}

/** What there is to fill the slot with. */
interface Source {
  readonly artefact: Artefact | undefined
  readonly stored: Stored
  /** Calls to engines that may still read the file. */
  readonly readers: Promise<unknown>[]
}

type Stored =
  | OpenOutcome
  /** Nothing is to be loaded. */
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly cause: unknown }

const openStored = async (parts: Parts, artefact: Artefact | undefined, signal: AbortSignal): Promise<Stored> => {
  if (artefact === undefined) return { kind: 'none' }
  try {
    return await parts.depot.open(artefact, signal)
  } catch (cause) {
    return { kind: 'failed', cause }
  }
}

const fillFrom = async (parts: Parts, filling: Filling, source: Source): Promise<FillOutcome> => {
  const { turn, slot, kv, signal } = filling
  const { artefact, stored } = source
  if (signal.aborted) return letGo(parts, filling, { kind: 'timed-out' })
  if (stored.kind === 'failed') return letGo(parts, filling, { kind: 'failed', cause: stored.cause })

  const view = await lookAtSlot(parts, { pod: turn.pod, slot }, signal)
  if (signal.aborted) return letGo(parts, filling, { kind: 'timed-out' })
  if (view.kind === 'failed') return letGo(parts, filling, { kind: 'failed', cause: view.cause })
  if (view.kind === 'no-such-slot' || view.slot.busy) return { kind: 'taken' }

  const place: Place = { ...filling, view }
  if (kv === undefined) return startEmpty(parts, place, { kind: 'empty' })
  const isUnusable = stored.kind === 'missing' || stored.kind === 'damaged'
  if (artefact === undefined || isUnusable || artefact.fingerprint !== view.fingerprint) {
    const why = isUnusable ? stored.kind : 'of another engine or model'
    parts.log.info('stored KV cannot be loaded', { pod: turn.pod, artefact: kv.artefactId, why })
    return startEmpty(parts, place, { kind: 'missing' })
  }
  if (turn.mayLoad === false || stored.kind === 'none') return startEmpty(parts, place, { kind: 'not-worthwhile' })
  return restore(parts, place, { file: stored.file, kv, readers: source.readers })
}

interface Place extends Filling {
  readonly view: Extract<SlotView, { kind: 'seen' }>
}

const restore = async (
  parts: Parts,
  place: Place,
  source: { readonly file: string; readonly kv: StoredKv; readonly readers: Promise<unknown>[] },
): Promise<FillOutcome> => {
  const end = await parts.client.restore(addressOf(place), source.file)
  switch (end.kind) {
    case 'late':
      source.readers.push(end.end)
      return followLate(parts, place, async () => {
        const late = await end.end
        if (late.kind === 'unknown') return undefined
        if (late.kind !== 'done') return { kind: 'unknown' }
        return (await contentAfter(parts, place, late.value, source.kv)) ?? { kind: 'unknown' }
      })
    case 'done':
      return restored(parts, place, end.value, source.kv)
    case 'refused':
      return eraseIfIdle(parts, place, end.status === 400 ? { kind: 'missing' } : { kind: 'failed', cause: end.cause })
    case 'unsent':
      return letGo(parts, place, { kind: 'failed', cause: end.cause })
    case 'unknown':
      return closeSlot(parts, place, end.cause)
  }
}

const restored = async (parts: Parts, place: Place, answer: TouchedSlot, kv: StoredKv): Promise<FillOutcome> => {
  if (!isAnswerTo(place, answer, kv)) {
    return eraseIfIdle(parts, place, failed('another number of tokens was restored than stored'))
  }
  const content = await contentAfter(parts, place, answer, kv)
  if (content === undefined) return { kind: 'taken' }
  const loadMs = Math.round(performance.now() - place.startedMs)
  return settle(parts, place, content, { kind: 'loaded', tokens: kv.tokens, loadMs })
}

const isAnswerTo = (place: Place, answer: TouchedSlot, kv: StoredKv): boolean =>
  answer.slot === place.slot && answer.tokens === kv.tokens

/** What the slot holds after a restore. Undefined: something else ran there meanwhile, or the engine does not tell. */
const contentAfter = async (
  parts: Parts,
  place: Place,
  answer: TouchedSlot,
  kv: StoredKv,
): Promise<SlotContent | undefined> => {
  const view = await lookAtSlot(parts, addressOf(place), new AbortController().signal)
  if (view.kind !== 'seen' || view.slot.busy || !isAnswerTo(place, answer, kv)) return undefined
  if (view.slot.tokens !== undefined && view.slot.tokens !== kv.tokens) return undefined
  return { kind: 'holds', artefactId: kv.artefactId, tokens: kv.tokens, mark: markOf(view.boot, view.slot) }
}

const eraseIfIdle = async (parts: Parts, place: Place, presence: KvPresence): Promise<FillOutcome> => {
  const view = await lookAtSlot(parts, addressOf(place), new AbortController().signal)
  return view.kind === 'seen' && !view.slot.busy ? erase(parts, place, presence) : { kind: 'taken' }
}

/** The turn starts in a slot that holds nothing of anybody. */
const startEmpty = (parts: Parts, place: Place, presence: KvPresence): Promise<FillOutcome> =>
  place.view.slot.tokens === 0 ? settle(parts, place, { kind: 'clean' }, presence) : erase(parts, place, presence)

const erase = async (parts: Parts, place: Place, presence: KvPresence): Promise<FillOutcome> => {
  const end = await parts.client.erase(addressOf(place))
  switch (end.kind) {
    case 'late':
      return followLate(parts, place, async () => {
        const late = await end.end
        if (late.kind === 'unknown') return undefined
        return late.kind === 'done' ? { kind: 'clean' } : { kind: 'unknown' }
      })
    case 'done':
      return settle(parts, place, { kind: 'clean' }, presence)
    case 'refused':
    case 'unsent':
      return letGo(parts, place, { kind: 'failed', cause: end.cause })
    case 'unknown':
      return closeSlot(parts, place, end.cause)
  }
}

const settle = async (parts: Parts, place: Place, content: SlotContent, presence: KvPresence): Promise<FillOutcome> => {
  if (await parts.ledger.settle({ ...turnOf(place), content, closeMs: 0 })) {
    return { kind: 'ready', presence, task: place.view.slot.task }
  }
  parts.log.warn('a slot was filled too slowly and has gone to another turn', addressOf(place))
  return letGo(parts, place, failed('the slot has gone to another turn'))
}

const letGo = async (parts: Parts, filling: Filling, presence: KvPresence): Promise<FillOutcome> => {
  await parts.ledger.release(turnOf(filling))
  return { kind: 'unusable', presence }
}

/** The call broke off in the middle. The engine has probably died; should it live, it may still act, so nobody gets the slot for a while. */
const closeSlot = async (parts: Parts, place: Place, cause: unknown): Promise<FillOutcome> => {
  const { callTimeoutMs } = parts.limits
  await parts.ledger.settle({ ...turnOf(place), content: { kind: 'unknown' }, closeMs: callTimeoutMs })
  return letGo(parts, place, { kind: 'failed', cause })
}

/**
 * The engine has not answered in time, and will still act. The slot stays closed, and with its owner, until the answer is there; `content`
 * resolves to what the slot holds then, or to undefined if the answer never came.
 */
const followLate = async (
  parts: Parts,
  place: Place,
  content: () => Promise<SlotContent | undefined>,
): Promise<FillOutcome> => {
  parts.log.warn('an engine is late with a slot', addressOf(place))
  const closeMs = parts.limits.lateTimeoutMs
  await parts.ledger.settle({ ...turnOf(place), content: { kind: 'unknown' }, closeMs })
  parts.background.run(
    'late slot',
    content().then((now) => release(parts, place, now)),
  )
  return { kind: 'unusable', presence: { kind: 'timed-out' } }
}

const release = (parts: Parts, filling: Filling, content: SlotContent | undefined): Promise<number> =>
  parts.ledger.release(content === undefined ? turnOf(filling) : { ...turnOf(filling), content })

const addressOf = ({ turn, slot }: Filling) => ({ pod: turn.pod, slot })

const turnOf = ({ turn, slot }: Filling) => ({ pod: turn.pod, slot, turnId: turn.turnId })

const failed = (why: string): KvPresence => ({ kind: 'failed', cause: new Error(why) })
