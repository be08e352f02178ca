import type { EndedTurn, FinishOutcome } from '../kv-connector.ts'
import type { NotStoredReason } from '../reasons.ts'
import type { SavedSlot } from '../slots/slot-client.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import { artefactIdOf, fileOf, formatPayload, partOf } from './artefact.ts'
import { type SlotClaim, slotClaim } from './claim.ts'
import { leaseMs } from './open-claims.ts'
import { endInTime, type Parts, releaseSlot } from './parts.ts'
import { isFromTurn, markOf } from './slot-evidence.ts'

/** Saves what the turn left in its slot, if it is certain that the turn left it, and releases the slot in any case. */
export const finish = async (parts: Parts, turn: EndedTurn): Promise<FinishOutcome> => {
  const { pod, turnId, totalTokens } = turn
  const claim = slotClaim.parse(turn.claim)
  const place = { pod: claim.pod, slot: claim.slot, turnId }
  if (claim.pod !== pod || (totalTokens !== undefined && totalTokens < parts.minTokens)) {
    await releaseSlot(parts, place)
    return none(claim.pod === pod ? 'too_short' : 'served_elsewhere')
  }
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

/** A save leaves the slot as it is. If a look afterwards shows that the turn ran there last, the file is the turn's. */
const save = async (parts: Parts, turn: EndedTurn, claim: SlotClaim): Promise<FinishOutcome> => {
  const { fingerprint } = claim
  const place = { pod: claim.pod, slot: claim.slot, turnId: turn.turnId }
  const artefactId = artefactIdOf(turn, fingerprint)
  const file = fileOf(artefactId)
  await turn.announce({ artefactId, payload: formatPayload({ file, fingerprint, content: undefined }) })
  turn.signal.throwIfAborted()
  // What is left behind all the same goes with the announced artefact, or as an unfinished file.
  const discard = (): Promise<void> => parts.files.delete(partOf(file)).catch(() => {})
  const saving = parts.client.save(claim, partOf(file))
  const saved = await endInTime(parts, place, saving, { signal: turn.signal, lateEnd: discard })
  if (saved === undefined) return none('offload_failed', new Error('the engine is late with saving the slot'))
  try {
    if (saved.kind !== 'done') throw saved.cause
    const { outcome, content } = await keep(parts, turn, { claim, artefactId, saved: saved.value })
    if (outcome.kind !== 'stored') await discard()
    await releaseSlot(parts, place, content)
    return outcome
  } catch (cause) {
    await discard()
    throw cause
  }
}

/** Gives the file its name. `content`: what is known of the slot now. */
const keep = async (
  parts: Parts,
  { createdAtMs, totalTokens, signal }: EndedTurn,
  { claim, artefactId, saved }: { readonly claim: SlotClaim; readonly artefactId: string; readonly saved: SavedSlot },
): Promise<{ readonly outcome: FinishOutcome; readonly content?: SlotContent }> => {
  const { tokens, bytes } = saved
  const { slots, fingerprint } = await parts.engines.look(claim.pod, signal, { isClaimed: true })
  const seen = fingerprint === claim.fingerprint ? slots.find(({ id }) => id === claim.slot) : undefined
  const isOfTurn = seen !== undefined && isFromTurn({ ...claim, totalTokens }, seen)
  if (!isOfTurn || saved.slot !== claim.slot || tokens !== seen.tokens) return { outcome: none('not_verified') }
  const content = { createdAtMs, tokens, mark: markOf(seen) }
  if (tokens < parts.minTokens) return { outcome: none('too_short'), content }
  if (parts.maxArtefactBytes !== undefined && bytes > parts.maxArtefactBytes) {
    parts.log.warn('KV is larger than the store takes', { pod: claim.pod, bytes, maxBytes: parts.maxArtefactBytes })
    return { outcome: none('too_large'), content }
  }
  const file = fileOf(artefactId)
  const sha256 = await parts.files.keep(file, { bytes, signal })
  if (sha256 === undefined) throw new Error('the file is not as long as the engine said')
  const payload = formatPayload({ file, fingerprint: claim.fingerprint, content: { bytes, sha256 } })
  return { outcome: { kind: 'stored', artefactId, payload, tokens, bytes }, content: { ...content, artefactId } }
}

const none = (reason: NotStoredReason, cause?: unknown): FinishOutcome => ({ kind: 'none', reason, cause })
