import { setTimeout as delay } from 'node:timers/promises'
import type { KvTurn, OffloadOutcome, OffloadRequest } from '../kv-connector.ts'
import type { SavedSlot } from '../slots/slot-client.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import { artefactIdOf, fileOf, formatPayload, partOf } from './artefact.ts'
import { parseClaim, type SlotClaim } from './claim.ts'
import { lookAtSlot, type SlotView } from './look.ts'
import type { Parts } from './parts.ts'
import { markOf, wasLeftBy } from './slot-evidence.ts'
import { noteStray } from './stray.ts'

const idlePollMs = 15

/** How a turn's slot is let go, and what is told about its KV. */
interface Ending {
  readonly outcome: OffloadOutcome
  /** What the slot holds now; undefined: as the ledger has it. */
  readonly content: SlotContent | undefined
}

type TakenSlot = Extract<SlotClaim, { kind: 'slot' }>
type SeenSlot = Extract<SlotView, { kind: 'seen' }>

/** Saves what the turn left in its slot, if it is certain that the turn left it, and lets the slot go in any case. */
export const offload = async (parts: Parts, request: OffloadRequest): Promise<OffloadOutcome> => {
  const { turn, totalTokens } = request
  const claim = parseClaim(request.claim)
  if (claim.kind === 'none') {
    await noteStraySafely(parts, request, claim)
    return { kind: 'none', reason: claim.reason }
  }
  const place = { pod: claim.pod, slot: claim.slot, turnId: turn.turnId }
  try {
    if (claim.pod !== turn.pod) {
      await noteStraySafely(parts, request, claim)
      return await end(parts, place, none('served_elsewhere'))
    }
    if (totalTokens !== undefined && totalTokens < parts.limits.minTokens) {
      return await end(parts, place, none('too_short'))
    }
    const { leaseMs } = parts.limits
    const save = await parts.ledger.beginSave({ ...place, session: turn.session, leaseMs })
    switch (save) {
      case 'superseded':
        return { kind: 'superseded' }
      case 'lost':
        return { kind: 'none', reason: 'not_verified' }
      case 'held':
        return await end(parts, place, await saveSafely(parts, request, claim))
    }
  } catch (cause) {
    return { kind: 'none', reason: 'offload_failed', cause }
  }
}

/** Whatever goes wrong, the slot has to be let go. */
const saveSafely = async (parts: Parts, request: OffloadRequest, claim: TakenSlot): Promise<Ending> => {
  try {
    return await saveVerified(parts, request, claim)
  } catch (cause) {
    return none('offload_failed', cause)
  }
}

const noteStraySafely = async (parts: Parts, request: OffloadRequest, claim: SlotClaim): Promise<void> => {
  const { turn, totalTokens, signal } = request
  try {
    await noteStray(parts, { turn, claim, totalTokens }, signal)
  } catch (err) {
    parts.log.warn('where a turn without a slot ran could not be noted', { pod: turn.pod, err })
  }
}

/** A ledger that cannot be reached now costs nothing but the rest of the lease. */
const end = async (
  parts: Parts,
  place: { readonly pod: string; readonly slot: number; readonly turnId: string },
  { outcome, content }: Ending,
): Promise<OffloadOutcome> => {
  try {
    const others = await parts.ledger.release(content === undefined ? place : { ...place, content })
    const isUnverified = outcome.kind === 'none' && outcome.reason === 'not_verified'
    return isUnverified && others > 0 ? { kind: 'superseded' } : outcome
  } catch (err) {
    parts.log.warn('a slot could not be released', { ...place, err })
    return outcome
  }
}

const saveVerified = async (parts: Parts, request: OffloadRequest, claim: TakenSlot): Promise<Ending> => {
  const { totalTokens, signal } = request
  const view = await lookWhenIdle(parts, claim, signal)
  if (view.kind === 'failed') return none('offload_failed', view.cause)
  if (view.kind === 'no-such-slot') return none('not_verified')
  const { slot: seen, boot } = view
  const evidence = { ...claim, totalTokens }
  if (seen.busy || seen.tokens === undefined || !wasLeftBy(evidence, seen)) {
    return none('not_verified')
  }
  const held: SlotContent = { kind: 'holds', artefactId: undefined, tokens: seen.tokens, mark: markOf(boot, seen) }
  if (seen.tokens < parts.limits.minTokens) return { ...none('too_short'), content: held }
  return saveAs(parts, request, { claim, view, tokens: seen.tokens, held })
}

/** The end of a turn is known a little before its slot shows as idle. */
const lookWhenIdle = async (parts: Parts, claim: TakenSlot, signal: AbortSignal): Promise<SlotView> => {
  const untilMs = performance.now() + parts.limits.idleWaitMs
  for (;;) {
    const view = await lookAtSlot(parts, claim, signal)
    if (view.kind !== 'seen' || !view.slot.busy || performance.now() >= untilMs) return view
    await delay(idlePollMs)
  }
}

interface Save {
  readonly claim: TakenSlot
  readonly view: SeenSlot
  readonly tokens: number
  /** The slot's content without an artefact. */
  readonly held: Extract<SlotContent, { kind: 'holds' }>
}

const saveAs = async (parts: Parts, request: OffloadRequest, save: Save): Promise<Ending> => {
  const { turn, signal } = request
  const { fingerprint } = save.view
  if (isTooLarge(parts, parts.sizes.leastBytes(fingerprint, save.tokens))) return tooLarge(parts, turn, save)
  const artefactId = artefactIdOf(turn, fingerprint)
  const file = fileOf(artefactId)
  await request.announce({ artefactId, payload: formatPayload({ file, fingerprint, content: undefined }) })
  const saved = await parts.client.save(save.claim, partOf(file), signal)
  switch (saved.kind) {
    case 'late':
      parts.background.run(
        'late save',
        saved.end.then(() => parts.folder.remove(partOf(file))),
      )
      return { ...none('offload_failed', new Error('the engine is late with saving the slot')), content: save.held }
    case 'done':
      return publish(parts, request, { ...save, artefactId, saved: saved.value })
    case 'refused':
    case 'unsent':
    case 'unknown':
      await discard(parts, turn, file)
      return { ...none('offload_failed', saved.cause), content: save.held }
  }
}

/** Gives the file its name if nothing else ran in the slot while it was written. */
const publish = async (
  parts: Parts,
  { turn, signal }: OffloadRequest,
  { claim, view, tokens, held, artefactId, saved }: Save & { readonly artefactId: string; readonly saved: SavedSlot },
): Promise<Ending> => {
  const file = fileOf(artefactId)
  const after = await lookAtSlot(parts, claim, signal)
  const isSame = after.kind === 'seen' && markOf(after.boot, after.slot) === held.mark && !after.slot.busy
  if (!isSame || saved.slot !== claim.slot || saved.tokens !== tokens) {
    await discard(parts, turn, file)
    return none('not_verified')
  }
  const { bytes } = saved
  parts.sizes.seen(view.fingerprint, { tokens, bytes })
  if (isTooLarge(parts, bytes)) {
    await discard(parts, turn, file)
    return tooLarge(parts, turn, { tokens, held })
  }
  const sha256 = await publishFile(parts, { file, bytes, signal })
  if (typeof sha256 !== 'string') {
    await discard(parts, turn, file)
    return { ...none('offload_failed', sha256), content: held }
  }
  const payload = formatPayload({ file, fingerprint: view.fingerprint, content: { bytes, sha256 } })
  return { outcome: { kind: 'stored', artefactId, payload, tokens, bytes }, content: { ...held, artefactId } }
}

const isTooLarge = ({ limits }: Parts, bytes: number): boolean =>
  limits.maxArtefactBytes !== undefined && bytes > limits.maxArtefactBytes

const tooLarge = (parts: Parts, { pod }: KvTurn, { tokens, held }: Pick<Save, 'tokens' | 'held'>): Ending => {
  parts.log.warn('KV is larger than the store takes', { pod, tokens, maxBytes: parts.limits.maxArtefactBytes })
  return { ...none('too_large'), content: held }
}

/** Resolves to the file's digest, or to why there is none. */
const publishFile = async (
  parts: Parts,
  { file, bytes, signal }: { readonly file: string; readonly bytes: number; readonly signal: AbortSignal },
): Promise<string | Error> => {
  try {
    const digest = await parts.depot.keep({ from: partOf(file), to: file, bytes, signal })
    return digest ?? new Error('the file is not as long as the engine said')
  } catch (error) {
    return new Error('the file cannot be kept', { cause: error })
  }
}

/** What is left behind all the same goes with the announced artefact, or as an orphan. */
const discard = async (parts: Parts, { pod }: KvTurn, file: string): Promise<void> => {
  try {
    await parts.folder.remove(partOf(file))
  } catch (err) {
    parts.log.warn('an unfinished file could not be removed', { pod, file, err })
  }
}

const none = (reason: string, cause?: unknown): Ending => ({
  outcome: { kind: 'none', reason, ...(cause === undefined ? {} : { cause }) },
  content: undefined,
})
