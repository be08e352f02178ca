import { setTimeout as delay } from 'node:timers/promises'
import { untilAborted } from '../../async/deadline.ts'
import type { StoredKv } from '../../sessions/session-record.ts'
import type { AttachOutcome, KvPresence, KvTurn } from '../kv-connector.ts'
import type { ClaimOutcome } from '../slots/slot-ledger.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import { formatClaim, type TasksBySlot } from './claim.ts'
import { fillSlot } from './fill.ts'
import { lookAtPod, lookAtSlot, type PodView } from './look.ts'
import { loadMsOf, type Parts } from './parts.ts'
import { newTurnMark, stillHolds } from './slot-evidence.ts'

/** How often a turn looks for another slot when something else has just begun to run in the one it claimed. */
const maxTries = 3
const waitPollMs = 20

/**
 * Finds or makes a slot that holds the session's KV. When `signal` fires the turn goes on without one; whatever is still under way is followed
 * to its end, and its slot let go then.
 */
export const attach = async (
  parts: Parts,
  turn: KvTurn,
  kv: StoredKv | undefined,
  signal: AbortSignal,
): Promise<AttachOutcome> => {
  const search: Search = { turn, kv, signal, startedMs: performance.now(), firstLook: undefined }
  const work = findSlot(parts, search)
  const attached = await untilAborted(work, signal, (): Attached => without({ kind: 'timed-out' }))
  if (signal.aborted) {
    parts.background.run(
      'let go',
      work.then((late) => letGo(parts, turn, late)),
    )
    return outcomeOf(search, without({ kind: 'timed-out' }))
  }
  return outcomeOf(search, attached)
}

/** A turn that has its slot, or goes on without one. */
type Attached =
  | {
      readonly kind: 'with-slot'
      readonly presence: KvPresence
      readonly slot: number
      readonly task: number | undefined
    }
  | { readonly kind: 'without'; readonly presence: KvPresence }

type Claimed = Extract<ClaimOutcome, { kind: 'claimed' }>
type SeenPod = Extract<PodView, { kind: 'seen' }>

interface Search {
  readonly turn: KvTurn
  readonly kv: StoredKv | undefined
  readonly signal: AbortSignal
  readonly startedMs: number
  /** Kept for the case that the turn goes on without a slot. */
  firstLook: SeenPod | undefined
}

const without = (presence: KvPresence): Attached => ({ kind: 'without', presence })

const outcomeOf = ({ turn, firstLook }: Search, attached: Attached): AttachOutcome => {
  switch (attached.kind) {
    case 'with-slot': {
      const { presence, slot, task } = attached
      const turnMark = newTurnMark()
      const claim = formatClaim({ kind: 'slot', pod: turn.pod, slot, taskBefore: task, turnMark })
      return { presence, fields: { id_slot: slot, n_keep: turnMark }, claim }
    }
    case 'without': {
      const { presence } = attached
      const reason = presence.kind === 'no-room' ? 'no_room' : 'not_attached'
      return {
        presence,
        fields: {},
        claim: formatClaim({ kind: 'none', reason, tasksBefore: firstLook && tasksOf(firstLook) }),
      }
    }
  }
}

const tasksOf = (pod: SeenPod): TasksBySlot =>
  Object.fromEntries(pod.slots.flatMap(({ id, task }) => (task === undefined ? [] : [[String(id), task]])))

const letGo = async (parts: Parts, turn: KvTurn, attached: Attached): Promise<void> => {
  if (attached.kind === 'with-slot') {
    await parts.ledger.release({ pod: turn.pod, slot: attached.slot, turnId: turn.turnId })
  }
}

const findSlot = async (parts: Parts, search: Search): Promise<Attached> => {
  try {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const attached = await tryOnce(parts, search)
      if (attached !== 'again') return attached
      if (search.signal.aborted) return without({ kind: 'timed-out' })
    }
    return without({ kind: 'no-room' })
  } catch (cause) {
    return without({ kind: 'failed', cause })
  }
}

const tryOnce = async (parts: Parts, search: Search): Promise<Attached | 'again'> => {
  const { turn, signal } = search
  const pod = await lookAtPod(parts, turn.pod, signal)
  if (signal.aborted) return without({ kind: 'timed-out' })
  if (pod.kind === 'failed') return without(pod)
  search.firstLook ??= pod
  const claimed = await claim(parts, search, pod)
  if (claimed.kind === 'no-room') return without({ kind: 'no-room' })
  switch (claimed.role) {
    case 'load':
      return fill(parts, search, claimed.slot)
    case 'check':
      return check(parts, search, { claimed, pod })
    case 'wait':
      return waitForLoad(parts, search, { claimed, pod })
  }
}

const claim = (parts: Parts, { turn }: Search, pod: SeenPod): Promise<ClaimOutcome> =>
  parts.ledger.claim({
    pod: turn.pod,
    session: turn.session,
    turnId: turn.turnId,
    leaseMs: parts.limits.leaseMs,
    loadMs: loadMsOf(parts.limits),
    slots: pod.slots.map(({ id, busy }) => ({ id, idle: !busy })),
  })

const fill = async (parts: Parts, search: Search, slot: number): Promise<Attached | 'again'> => {
  const filled = await fillSlot(parts, { ...search, slot })
  switch (filled.kind) {
    case 'ready':
      return { kind: 'with-slot', presence: filled.presence, slot, task: filled.task }
    case 'unusable':
      return without(filled.presence)
    case 'taken':
      await release(parts, search, slot)
      return 'again'
  }
}

interface Found {
  readonly claimed: Claimed
  readonly pod: SeenPod
}

/** Another turn of the session fills the slot. What it leaves is known without asking the engine: it was settled a moment ago. */
const waitForLoad = async (parts: Parts, search: Search, found: Found): Promise<Attached | 'again'> => {
  const { kv, signal, startedMs } = search
  let { claimed } = found
  while (claimed.role === 'wait') {
    if (signal.aborted) {
      await release(parts, search, claimed.slot)
      return without({ kind: 'timed-out' })
    }
    await delay(waitPollMs)
    const next = await claim(parts, search, found.pod)
    if (next.kind === 'no-room' || next.slot !== claimed.slot) {
      await release(parts, search, claimed.slot)
    }
    if (next.kind === 'no-room') return without({ kind: 'no-room' })
    claimed = next
  }
  if (claimed.role === 'load') return fill(parts, search, claimed.slot)
  const { content, slot } = claimed
  const task = found.pod.slots.find(({ id }) => id === slot)?.task
  if (content.kind === 'holds') {
    const loadMs = Math.round(performance.now() - startedMs)
    return { kind: 'with-slot', presence: { kind: 'loaded', tokens: content.tokens, loadMs }, slot, task }
  }
  // Why the other turn could not load it is for that turn to tell.
  const why = new Error('the turn that loaded it did not succeed')
  const presence: KvPresence = kv === undefined ? { kind: 'empty' } : { kind: 'failed', cause: why }
  return { kind: 'with-slot', presence, slot, task }
}

/** Compares what the ledger says with what the engine reports, and fills the slot anew where they disagree. */
const check = async (parts: Parts, search: Search, { claimed, pod }: Found): Promise<Attached | 'again'> => {
  const { turn, signal } = search
  const { slot } = claimed
  const first = pod.slots.find(({ id }) => id === slot)
  const atOnce = first && presenceOf(search, claimed, first, pod.boot)
  if (atOnce !== undefined) return { kind: 'with-slot', presence: atOnce, slot, task: first?.task }

  if (claimed.content.kind === 'clean' && claimed.others === 0) return reload(parts, search, claimed)
  // The first look may be older than what the ledger says.
  const view = await lookAtSlot(parts, { pod: turn.pod, slot }, signal)
  if (view.kind === 'failed') return giveUp(parts, search, slot, { kind: 'failed', cause: view.cause })
  if (view.kind === 'seen') {
    const presence = presenceOf(search, claimed, view.slot, view.boot) ?? sharedPresence(search, claimed, view.slot)
    if (presence !== undefined) return { kind: 'with-slot', presence, slot, task: view.slot.task }
  }
  if (view.kind === 'no-such-slot' || view.slot.busy) {
    await release(parts, search, slot)
    return 'again'
  }
  return reload(parts, search, claimed)
}

const reload = async (parts: Parts, search: Search, { slot, revision }: Claimed): Promise<Attached | 'again'> => {
  const { pod, turnId } = search.turn
  const isLoader = await parts.ledger.reload({ pod, slot, turnId, revision, loadMs: loadMsOf(parts.limits) })
  if (isLoader) return fill(parts, search, slot)
  await release(parts, search, slot)
  return 'again'
}

const release = (parts: Parts, { turn }: Search, slot: number): Promise<number> =>
  parts.ledger.release({ pod: turn.pod, slot, turnId: turn.turnId })

const giveUp = async (
  parts: Parts,
  { turn, signal }: Search,
  slot: number,
  presence: KvPresence,
): Promise<Attached> => {
  await parts.ledger.release({ pod: turn.pod, slot, turnId: turn.turnId })
  return without(signal.aborted ? { kind: 'timed-out' } : presence)
}

/** What is there, if ledger and engine agree and the store has nothing newer. */
const presenceOf = (
  { turn, kv }: Search,
  { content }: Claimed,
  seen: SlotSnapshot,
  boot: string,
): KvPresence | undefined => {
  switch (content.kind) {
    case 'unknown':
      return undefined
    case 'clean':
      return kv === undefined && !seen.busy && seen.tokens === 0 ? { kind: 'empty' } : undefined
    case 'holds': {
      if (turn.startsAnew) return undefined
      const isNewer = kv !== undefined && kv.artefactId !== content.artefactId && kv.tokens > content.tokens
      if (isNewer || !stillHolds(content, seen, boot)) return undefined
      return { kind: 'resident', tokens: seen.tokens ?? content.tokens }
    }
  }
}

/**
 * What is there while another turn of the session runs, or has just run, in the slot: its content has grown, and must not be touched.
 * Undefined: the content is gone.
 */
const sharedPresence = ({ kv }: Search, { content, others }: Claimed, seen: SlotSnapshot): KvPresence | undefined => {
  if (others === 0) return undefined
  switch (content.kind) {
    case 'unknown':
      return undefined
    case 'clean':
      if (kv === undefined) return { kind: 'empty' }
      return { kind: 'failed', cause: new Error('another turn of the session uses the slot') }
    case 'holds': {
      const hasGrown = seen.busy || (seen.tokens ?? 0) >= content.tokens
      return hasGrown ? { kind: 'resident', tokens: content.tokens } : undefined
    }
  }
}
