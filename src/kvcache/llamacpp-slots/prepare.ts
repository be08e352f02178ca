import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { untilAborted } from '../../async/deadline.ts'
import type { KvPresence, PrepareBudget, Prepared, StartingTurn } from '../kv-connector.ts'
import type { KvMissReason, NotStoredReason } from '../reasons.ts'
import type { SlotSnapshot } from '../slots/slot-client.ts'
import type { ClaimOutcome, SlotContent, SlotTurn } from '../slots/slot-ledger.ts'
import { parsePayload } from './artefact.ts'
import type { IntactFile } from './artefact-files.ts'
import { maxTag, type SlotClaim, unknownEngine } from './claim.ts'
import { type EngineView, isAway, isLate } from './engines.ts'
import { leaseMs } from './open-claims.ts'
import { follow, type Parts, releaseSlot } from './parts.ts'
import { stillHolds } from './slot-evidence.ts'

/** How often a turn looks for another slot when something else has just begun to run in the one it claimed. */
const maxTries = 3
/** How long a turn waits for one of its session that is not reported or saved yet, or which holds the last slot. */
const maxWaitMs = 500
const pollMs = 20
/** A look that is younger still shows who uses a slot. A busy engine answers another one only after its next batch. */
const freshLookMs = 50

interface Search {
  readonly turn: StartingTurn
  readonly budget: PrepareBudget
  /** Until when the turn waits for a slot. */
  readonly placeSignal: AbortSignal
  readonly startedMs: number
  /** The engine at the last look. */
  seen: EngineView | undefined
}

/**
 * Finds or makes a slot that holds the session's KV, unless the engine would not run the turn there. When `placeSignal`
 * fires the turn goes on without one; whatever is still under way is followed to its end, and its slot is released then.
 * @throws when the ledger fails, or a load breaks off
 */
export const prepare = async (parts: Parts, turn: StartingTurn, budget: PrepareBudget): Promise<Prepared> => {
  if (turn.isMessages === true && !parts.engines.takesFieldsOnMessages(turn.pod))
    return { presence: miss('fields_ignored'), fields: parts.isolation(turn.tenant), notStored: 'fields_ignored' }
  const { placeSignal = budget.signal } = budget
  const search: Search = { turn, budget, placeSignal, startedMs: performance.now(), seen: undefined }
  const work = findSlot(parts, search)
  const found = await untilAborted(work, placeSignal, () => undefined)
  if (found !== undefined && !placeSignal.aborted) return found
  const releaseLate = async (): Promise<void> => {
    const late = await work.catch(() => undefined)
    if (late?.place !== undefined) await releaseSlot(parts, late.place)
  }
  follow(parts, releaseLate())
  return without(parts, search, miss('no_slot', placeSignal.reason), 'no_room')
}

interface Found extends Prepared {
  /** Undefined: the turn holds no slot. */
  readonly place?: SlotTurn
}

const findSlot = async (parts: Parts, search: Search): Promise<Found> => {
  if (!(await parts.folder.isOurs())) return without(parts, search, miss('kv_folder_foreign'), 'kv_folder_foreign')
  for (let tries = 0; tries < maxTries && !search.placeSignal.aborted; ) {
    const found = await tryOnce(parts, search)
    if (typeof found === 'object') return found
    if (found === 'taken') tries += 1
    else if (search.budget.signal.aborted) return without(parts, search, late(search), 'not_attached')
    else await delay(pollMs)
  }
  return without(parts, search, miss('no_slot'), 'no_room')
}

/** A miss of a turn whose KV is being saved, or loaded, for longer than computing it takes. */
const late = ({ turn, budget }: Search): KvPresence =>
  miss(turn.stored === undefined ? 'nothing_stored' : 'load_timeout', budget.signal.reason)

/** The turn runs in whichever slot the engine chooses; by its tag it is found there afterwards, and its KV is stored. */
const without = (
  { isolation }: Parts,
  { turn, seen }: Search,
  presence: KvPresence,
  notStored: NotStoredReason,
): Found => {
  const fields = isolation(turn.tenant)
  if (seen === undefined) return { presence, fields, notStored }
  const tag = randomInt(1, maxTag)
  const previousTask = Math.max(-1, ...seen.slots.map(({ task = -1 }) => task))
  const claim: SlotClaim = { pod: turn.pod, slot: -1, previousTask, tag, fingerprint: seen.fingerprint }
  return { presence, fields: { ...fields, n_keep: tag }, claim }
}

const tryOnce = async (parts: Parts, search: Search): Promise<Found | 'taken' | 'wait'> => {
  const { turn, placeSignal } = search
  const { pod, turnId } = turn
  const seen = await parts.engines.look(pod, placeSignal).catch((cause: unknown) => ({ cause }))
  if ('cause' in seen) {
    if (isLate(seen.cause)) return without(parts, search, miss('no_slot'), 'no_room')
    search.seen = { slots: [], fingerprint: unknownEngine }
    const isPodAway = isAway(seen.cause)
    const presence = { kind: 'miss', reason: 'load_failed', cause: seen.cause, isPodAway } as const
    return without(parts, search, presence, 'not_attached')
  }
  search.seen = seen
  const lookedMs = performance.now()
  const { slots, fingerprint } = seen
  const claimed = await claim(parts, search, slots)
  if (claimed.kind === 'wait') return 'wait'
  const before = slots.find(({ id }) => claimed.kind === 'claimed' && id === claimed.slot)
  if (claimed.kind === 'no-room' || before === undefined) return without(parts, search, miss('no_slot'), 'no_room')
  const place = { pod, slot: before.id, turnId }
  parts.claims.add(place)
  const resident = residentIn(search, claimed.content, before)
  const presence = resident ?? (await loadArtefact(parts, { ...search, place, fingerprint, lookedMs }))
  if (presence === 'taken' || !(await isStillHeld(parts, { ...search, place }))) {
    await releaseSlot(parts, place)
    return 'taken'
  }
  const tag = randomInt(1, maxTag)
  // Without KV of the session in the slot, the engine must not reuse what lies there.
  const use = { id_slot: before.id, n_keep: tag, cache_prompt: presence.kind === 'hit' }
  const held: SlotClaim = { pod, slot: before.id, previousTask: before.task ?? -1, tag, fingerprint }
  return { presence, fields: { ...use, cache_salt: parts.saltOf(turn) }, claim: held, place }
}

const claim = ({ ledger }: Parts, { turn, startedMs }: Search, slots: readonly SlotSnapshot[]): Promise<ClaimOutcome> =>
  ledger.claim({
    pod: turn.pod,
    session: turn.session,
    turnId: turn.turnId,
    leaseMs,
    artefactId: turn.stored?.artefactId,
    isLong: turn.isLong === true,
    mayWait: performance.now() - startedMs < maxWaitMs,
    slots: slots.map(({ id, busy, task }) => ({ id, idle: !busy, task })),
  })

/** KV of the session's life in the slot, if ledger and engine agree on that and nothing newer is stored. */
const residentIn = (
  { turn: { restarted, createdAtMs, stored } }: Search,
  content: SlotContent | undefined,
  seen: SlotSnapshot,
): KvPresence | undefined => {
  if (restarted || content === undefined || !stillHolds(content, seen)) return undefined
  if (content.createdAtMs !== createdAtMs) return undefined
  const { artefactId, tokens } = content
  const isNewerStored = stored !== undefined && stored.artefactId !== artefactId && stored.tokens > tokens
  return isNewerStored ? undefined : { kind: 'hit', tier: 'gpu', tokens }
}

/** Asks the ledger where the lease may have run out, as in a process that stood still. */
const isStillHeld = async ({ ledger }: Parts, { place, startedMs }: Pick<EmptySlot, 'place' | 'startedMs'>) =>
  performance.now() - startedMs < leaseMs / 2 || (await ledger.renew([place], { leaseMs }).catch(() => []))[0] === true

/** A turn that holds a slot without KV of its session. */
interface EmptySlot extends Search {
  readonly place: SlotTurn
  /** Of the engine. */
  readonly fingerprint: string
  /** When the slot was seen idle. */
  readonly lookedMs: number
}

/**
 * Loads the session's stored KV if this engine can. After a miss the turn can use the slot, but not what lies there.
 * `taken`: something else runs in the slot. A load that is late goes on: the engine ends it before it runs the turn.
 * @throws when nobody knows whether the engine has loaded
 */
const loadArtefact = async (parts: Parts, empty: EmptySlot): Promise<KvPresence | 'taken'> => {
  const { turn, place, fingerprint, budget } = empty
  if (turn.stored === undefined) return miss('nothing_stored')
  const artefact = parsePayload(turn.stored.payload)
  if (artefact?.fingerprint !== fingerprint) return miss('kv_incompatible')
  const refused = await budget.refuseLoad?.()
  if (refused !== undefined) return miss(refused)
  const startedMs = performance.now()
  const { signal } = budget
  const opened = await parts.files.open(artefact, signal).catch((cause: unknown) => ({ cause }))
  if (typeof opened === 'string') {
    parts.log.info('stored KV cannot be loaded', { pod: place.pod, artefact: turn.stored.artefactId, why: opened })
    return { kind: 'miss', reason: 'kv_missing', gone: true }
  }
  if ('cause' in opened) return miss(signal.aborted ? 'load_timeout' : 'load_failed', opened.cause)
  if (!(await isStillIdle(parts, empty)) || !(await isStillHeld(parts, empty))) {
    await opened.close()
    return 'taken'
  }
  const restoring = restore(parts, place, { opened, tokens: turn.stored.tokens, startedMs })
  const loaded = await untilAborted(restoring, signal, () => undefined)
  if (loaded !== undefined) return loaded
  const { turnId } = place
  const loading = restoring.then(nothing, nothing).finally(() => parts.lateLoads.delete(turnId))
  parts.lateLoads.set(turnId, loading)
  follow(parts, loading)
  return late(empty)
}

/** An engine accepts a load into a busy slot, and does it once the slot is idle. */
const isStillIdle = async ({ engines }: Parts, { place, placeSignal, lookedMs }: EmptySlot): Promise<boolean> => {
  if (performance.now() - lookedMs < freshLookMs) return true
  const { slots } = await engines.look(place.pod, placeSignal).catch(() => ({ slots: [] }))
  return slots.find(({ id }) => id === place.slot)?.busy === false
}

const restore = async (
  parts: Parts,
  place: SlotTurn,
  { opened, tokens, startedMs }: { readonly opened: IntactFile; readonly tokens: number; readonly startedMs: number },
): Promise<KvPresence> => {
  const end = await parts.client.restore(place, opened.file)
  // No fault of the engine: a turn of the same session at the same time has stored newer KV, and this went.
  const isReplaced = end.kind === 'refused' && !(await opened.isThere())
  await opened.close()
  if (isReplaced) return { kind: 'miss', reason: 'kv_missing', gone: true }
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

const nothing = (): void => {}

const miss = (reason: KvMissReason, cause?: unknown): KvPresence => ({ kind: 'miss', reason, cause })
