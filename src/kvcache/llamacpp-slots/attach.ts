import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { untilAborted } from '../../async/deadline.ts'
import type { StoredKv } from '../../sessions/session-record.ts'
import type { AttachOutcome, KvPresence, KvTurn } from '../kv-connector.ts'
import type { ClaimOutcome, SlotContent, SlotTurn } from '../slots/slot-ledger.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import { formatClaim } from './claim.ts'
import { fieldsInSlot, fieldsWithoutSlot } from './engine-fields.ts'
import { fillSlot, type Search } from './fill.ts'
import { leaseMs } from './open-claims.ts'
import { type Parts, releaseSlot } from './parts.ts'
import { stillHolds } from './slot-evidence.ts'

/** How often a turn looks for another slot when something else has just begun to run in the one it claimed. */
const maxTries = 3
/** How long a turn waits while the turn before is being saved. */
const saveWaitMs = 500
const savePollMs = 20
/** Below any context length, to which older builds of llama-server reduce it. */
const maxTag = 1_000

interface Found {
  readonly presence: KvPresence
  /** Undefined: the turn runs without a slot of its own. */
  readonly slot?: { readonly before: SlotSnapshot; readonly fingerprint: string }
}

/**
 * Finds or makes a slot that holds the session's KV. When `signal` fires the turn goes on without one; whatever is still under way is followed
 * to its end, and its slot is released then.
 */
export const attach = async (
  parts: Parts,
  turn: KvTurn,
  kv: StoredKv | undefined,
  signal: AbortSignal,
): Promise<AttachOutcome> => {
  const work = findSlot(parts, { turn, kv, signal, startedMs: performance.now() })
  const found = await untilAborted(work, signal, (): Found => timedOut)
  if (!signal.aborted) return outcomeOf(parts, turn, found)
  const releaseLate = async (): Promise<void> => {
    const { slot } = await work
    if (slot !== undefined) await releaseSlot(parts, placeOf(turn, slot.before.id))
  }
  parts.background.run('release of a late slot', releaseLate())
  return outcomeOf(parts, turn, timedOut)
}

const timedOut: Found = { presence: { kind: 'timed-out' } }

const placeOf = ({ pod, turnId }: KvTurn, slot: number): SlotTurn => ({ pod, slot, turnId })

const outcomeOf = ({ salts }: Parts, turn: KvTurn, { presence, slot }: Found): AttachOutcome => {
  if (slot === undefined) {
    const reason = presence.kind === 'no-room' ? 'no_room' : 'not_attached'
    const fields = { ...fieldsWithoutSlot, cache_salt: salts.withoutSession(turn.tenant, 'session') }
    return { presence, fields, claim: formatClaim({ reason }) }
  }
  const { session, tenant, model, pod } = turn
  const { before, fingerprint } = slot
  const tag = randomInt(1, maxTag)
  const holdsKv = presence.kind === 'resident' || presence.kind === 'loaded'
  const salt = salts.of({ tenant, session: { key: session, life: '' }, model, fingerprint: '' })
  return {
    presence,
    fields: fieldsInSlot({ slot: before.id, tag, holdsKv }, salt),
    claim: formatClaim({ pod, slot: before.id, previousTask: before.task, tag, fingerprint }),
  }
}

const findSlot = async (parts: Parts, search: Search): Promise<Found> => {
  try {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const found = await tryOnce(parts, search)
      if (found !== 'again') return found
    }
    return { presence: { kind: 'no-room' } }
  } catch (cause) {
    return { presence: { kind: 'failed', cause } }
  }
}

const tryOnce = async (parts: Parts, search: Search): Promise<Found | 'again'> => {
  const { turn, signal } = search
  const view = await parts.engines.look(turn.pod, signal)
  if (signal.aborted) return timedOut
  if (view.kind === 'failed') return { presence: { kind: 'failed', cause: view.cause } }
  const { slots, fingerprint } = view.value
  const claimed = await claim(parts, search, slots)
  if (claimed.kind === 'saving') {
    await waitForSave(parts, search)
    return 'again'
  }
  if (claimed.kind === 'no-room') return { presence: { kind: 'no-room' } }
  const place = placeOf(turn, claimed.slot)
  parts.claims.add(place)
  const before = slots.find(({ id }) => id === claimed.slot)
  if (before === undefined) throw new Error('a slot was claimed that the engine does not have')
  const tokens = residentTokens(search, claimed.content, before)
  if (tokens !== undefined) return { presence: { kind: 'resident', tokens }, slot: { before, fingerprint } }
  const filled = await fillSlot(parts, search, { place, fingerprint })
  switch (filled.kind) {
    case 'ready':
      return { presence: filled.presence, slot: { before, fingerprint } }
    case 'unusable':
      return { presence: filled.presence }
    case 'taken':
      await releaseSlot(parts, place)
      return 'again'
  }
}

const claim = (
  { ledger }: Parts,
  { turn, kv, startedMs }: Search,
  slots: readonly SlotSnapshot[],
): Promise<ClaimOutcome> =>
  ledger.claim({
    pod: turn.pod,
    session: turn.session,
    turnId: turn.turnId,
    leaseMs,
    artefactId: kv?.artefactId,
    waitsForSave: performance.now() - startedMs < saveWaitMs,
    slots: slots.map(({ id, busy }) => ({ id, idle: !busy })),
  })

/** A claim of no slot only says whether the save has ended. */
const waitForSave = async (parts: Parts, search: Search): Promise<void> => {
  do await delay(savePollMs)
  while (!search.signal.aborted && (await claim(parts, search, [])).kind === 'saving')
}

/** How many of the session's tokens lie in the slot, if ledger and engine agree on that and nothing newer is stored. */
const residentTokens = (
  { turn, kv }: Search,
  content: SlotContent | undefined,
  seen: SlotSnapshot,
): number | undefined => {
  if (turn.startsAnew === true || content === undefined || !stillHolds(content, seen)) return undefined
  const isNewerStored = kv !== undefined && kv.artefactId !== content.artefactId && kv.tokens > content.tokens
  return isNewerStored ? undefined : content.tokens
}
