import type { SessionKey } from '../../sessions/session-record.ts'
import type { KvRemoval, RemoveOutcome } from '../kv-connector.ts'
import { parsePayload } from './artefact.ts'
import type { Parts } from './parts.ts'
import { wipeSlot } from './wipe.ts'

/** Removes a session's or an artefact's file, and a session's KV from every slot in which it may lie. */
export const remove = async (parts: Parts, removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome> => {
  try {
    if (removal.payload !== undefined) await removeFile(parts, removal.payload, signal)
    switch (removal.kind) {
      case 'artefact':
        return { kind: 'removed' }
      case 'session':
        return await wipeSession(parts, removal.session, signal)
    }
  } catch (err) {
    parts.log.warn('KV could not be removed', { kind: removal.kind, err })
    return { kind: 'busy', reason: 'the folder or the ledger does not answer' }
  }
}

const removeFile = async (parts: Parts, payload: string, signal: AbortSignal): Promise<void> => {
  const artefact = parsePayload(payload)
  if (artefact === undefined) {
    parts.log.warn('a removal names no file of this connector', {})
    return
  }
  await parts.depot.remove(artefact.file, signal)
}

const wipeSession = async (parts: Parts, session: SessionKey, signal: AbortSignal): Promise<RemoveOutcome> => {
  const slots = await parts.ledger.slotsOf(session)
  const configured = new Set(parts.pods())
  const gone = new Set(slots.map(({ pod }) => pod).filter((pod) => !configured.has(pod)))
  await Promise.all([...gone].map((pod) => parts.ledger.forgetPod(pod)))
  const outcomes = await Promise.all(
    slots
      .filter(({ pod }) => configured.has(pod))
      .map(({ pod, slot }) => wipeSlot(parts, { pod, slot, session }, signal)),
  )
  return outcomes.find((outcome) => outcome.kind === 'busy') ?? { kind: 'removed' }
}
