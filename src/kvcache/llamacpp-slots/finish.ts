import { pause } from '../../async/deadline.ts'
import type { EndedTurn, FinishOutcome } from '../kv-connector.ts'
import type { NotStoredReason } from '../reasons.ts'
import type { ActionEnd, SavedSlot } from '../slots/slot-client.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import { artefactIdOf, fileOf, formatPayload, partOf } from './artefact.ts'
import { type SlotClaim, slotClaim, unknownEngine } from './claim.ts'
import { leaseMs } from './open-claims.ts'
import { endInTime, type Parts, releaseSlot } from './parts.ts'
import { isFromTurn, isFromUnheldTurn, markOf } from './slot-evidence.ts'

/** How often a busy engine is asked to save a slot, or to show it, and how long a turn waits after the first refusal. */
const maxTries = 3
const firstPauseMs = 500

/** Saves what the turn left in its slot, if it is certain that the turn left it, and releases the slot in any case. */
export const finish = async (parts: Parts, turn: EndedTurn): Promise<FinishOutcome> => {
  const { pod, turnId, totalTokens } = turn
  const claim = slotClaim.parse(turn.claim)
  const isHeld = claim.slot >= 0
  const place = { pod: claim.pod, slot: claim.slot, turnId }
  const isTooShort = totalTokens !== undefined && totalTokens < parts.minTokens
  if (isHeld && (claim.pod !== pod || isTooShort)) await releaseSlot(parts, place)
  if (isTooShort) return none('too_short')
  if (isHeld && claim.pod === pod) return finishIn(parts, turn, claim)
  const found = await findTurn(parts, turn, claim)
  if (found !== undefined) return finishIn(parts, turn, found)
  return none(claim.pod !== pod ? 'served_elsewhere' : claim.fingerprint === unknownEngine ? 'not_attached' : 'no_room')
}

/** The slot in which a turn has run that held none in its pod, held for it now. */
const findTurn = async (parts: Parts, turn: EndedTurn, claim: SlotClaim): Promise<SlotClaim | undefined> => {
  const { pod, turnId, session, totalTokens, signal } = turn
  const { slots, fingerprint } = await parts.engines.look(pod, signal, { isClaimed: true })
  // Another pod has an engine, and numbers of tasks, of its own.
  const sought = claim.pod === pod ? claim : { ...claim, pod, previousTask: -1, fingerprint }
  const seen = slots.find((slot) => isFromUnheldTurn({ ...sought, totalTokens }, slot))
  if (seen === undefined || sought.fingerprint !== fingerprint) return undefined
  const taken = await parts.ledger.seize({ pod, slot: seen.id, turnId, session, leaseMs })
  return taken === undefined ? undefined : { ...sought, slot: seen.id }
}

const finishIn = async (parts: Parts, turn: EndedTurn, claim: SlotClaim): Promise<FinishOutcome> => {
  const { turnId } = turn
  const place = { pod: claim.pod, slot: claim.slot, turnId }
  try {
    const [isHeld] = await parts.ledger.renew([place], { leaseMs, saving: true })
    if (isHeld !== true) {
      parts.claims.drop(turnId)
      return none('not_verified')
    }
    parts.claims.add(place)
    return await save(parts, turn, claim)
  } catch (cause) {
    await releaseSlot(parts, place)
    throw cause
  }
}

/**
 * A save leaves the slot as it is, also one that fails, as on a full disk. If a look afterwards shows that the turn ran
 * there last, the file and what lies in the slot are the turn's. A busy engine saves between two batches: the slot holds
 * the KV for as long as that takes, and is asked again.
 */
const save = async (parts: Parts, turn: EndedTurn, claim: SlotClaim): Promise<FinishOutcome> => {
  const { fingerprint } = claim
  const place = { pod: claim.pod, slot: claim.slot, turnId: turn.turnId }
  const artefactId = artefactIdOf(turn, fingerprint)
  const file = fileOf(artefactId)
  await turn.announce({ artefactId, payload: formatPayload({ file, fingerprint, content: undefined }) })
  // What is left behind all the same goes with the announced artefact, or as an unfinished file.
  const discard = (): Promise<void> => parts.files.delete(partOf(file)).catch(() => {})
  for (let tries = 1; ; tries += 1) {
    turn.signal.throwIfAborted()
    const saving = parts.client.save(claim, partOf(file))
    const limits = { signal: turn.signal, limitMs: parts.maxTurnMs, lateEnd: discard }
    const saved = await endInTime(parts, place, saving, limits)
    if (saved === undefined) return none('offload_failed', new Error('the engine is late with saving the slot'))
    try {
      if (saved.kind !== 'done') throw saved.cause
      const { outcome, content } = await keep(parts, turn, { claim, artefactId, saved: saved.value })
      if (outcome.kind !== 'stored') await discard()
      await releaseSlot(parts, place, content)
      return outcome
    } catch (cause) {
      await discard()
      if (saved.kind === 'unknown') throw cause
      if (tries >= maxTries || !isWorthRepeating(saved)) {
        await releaseSlot(parts, place, await contentLeft(parts, turn, claim))
        return none('offload_failed', cause)
      }
      await pause(firstPauseMs * 2 ** (tries - 1), turn.signal)
    }
  }
}

/** An engine that cannot save at all says so with 4xx, or with 501. */
const isWorthRepeating = (saved: Exclude<ActionEnd<SavedSlot>, { readonly kind: 'unknown' }>): boolean => {
  switch (saved.kind) {
    case 'done':
    case 'unsent':
      return true
    case 'refused':
      return saved.status === 429 || (saved.status >= 500 && saved.status !== 501)
  }
}

/** What the turn left in its slot; undefined: something else ran there since, or the engine is another one. */
const contentLeft = async (
  parts: Parts,
  { createdAtMs, totalTokens, signal }: EndedTurn,
  claim: SlotClaim,
): Promise<SlotContent | undefined> => {
  const { slots, fingerprint } = await parts.engines.look(claim.pod, signal, { isClaimed: true })
  const seen = fingerprint === claim.fingerprint ? slots.find(({ id }) => id === claim.slot) : undefined
  if (seen?.tokens === undefined || !isFromTurn({ ...claim, totalTokens }, seen)) return undefined
  return { createdAtMs, tokens: seen.tokens, mark: markOf(seen) }
}

/** Gives the file its name. `content`: what is known of the slot now. */
const keep = async (
  parts: Parts,
  turn: EndedTurn,
  { claim, artefactId, saved }: { readonly claim: SlotClaim; readonly artefactId: string; readonly saved: SavedSlot },
): Promise<{ readonly outcome: FinishOutcome; readonly content?: SlotContent }> => {
  const { tokens, bytes } = saved
  const content = await contentLeft(parts, turn, claim)
  if (saved.slot !== claim.slot || tokens !== content?.tokens) return { outcome: none('not_verified') }
  if (tokens < parts.minTokens) return { outcome: none('too_short'), content }
  if (parts.maxArtefactBytes !== undefined && bytes > parts.maxArtefactBytes) {
    parts.log.warn('KV is larger than the store takes', { pod: claim.pod, bytes, maxBytes: parts.maxArtefactBytes })
    return { outcome: none('too_large'), content }
  }
  const file = fileOf(artefactId)
  const sha256 = await parts.files.keep(file, { bytes, signal: turn.signal })
  if (sha256 === undefined) throw new Error('the file is not as long as the engine said')
  const payload = formatPayload({ file, fingerprint: claim.fingerprint, content: { bytes, sha256 } })
  return { outcome: { kind: 'stored', artefactId, payload, tokens, bytes }, content: { ...content, artefactId } }
}

const none = (reason: NotStoredReason, cause?: unknown): FinishOutcome => ({ kind: 'none', reason, cause })
