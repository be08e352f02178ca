import { within } from '../../async/deadline.ts'
import type { ConnectorOptions, ConnectorParts } from '../connector-definition.ts'
import type { KvConnector, KvTurn } from '../kv-connector.ts'
import type { ActionEnd, SlotClient } from '../slots/slot-client.ts'
import type { SlotContent, SlotLedger, SlotTurn } from '../slots/slot-ledger.ts'
import type { ArtefactFiles } from './artefact-files.ts'
import type { Engines } from './engines.ts'
import type { FolderOwner } from './folder-owner.ts'
import type { OpenClaims } from './open-claims.ts'

/** What the connector's operations share. */
export interface Parts
  extends Pick<ConnectorParts, 'pods' | 'orphanGraceMs' | 'maxArtefactBytes' | 'maxTurnMs' | 'log'>,
    Pick<ConnectorOptions, 'callTimeoutMs' | 'minTokens'> {
  /** Shared by all gateway processes that send turns to the same pods. */
  readonly ledger: SlotLedger
  readonly claims: OpenClaims
  readonly client: SlotClient
  readonly engines: Engines
  /** Pods with an IP address. Undefined: none has had one yet, as at a start without DNS. None later: scaled to 0. */
  readonly knownPods: () => readonly string[] | undefined
  readonly files: ArtefactFiles
  readonly folder: FolderOwner
  /** Fields of a turn that holds no slot. */
  readonly isolation: NonNullable<KvConnector['isolation']>
  /** The salt of a turn that holds a slot. */
  readonly saltOf: (turn: KvTurn) => string
  /** Loads for which their turns have stopped waiting, by turn. None rejects. */
  readonly lateLoads: Map<string, Promise<void>>
  /** What goes on after its caller has been answered. Never rejects. */
  readonly background: Set<Promise<void>>
}

/** Ends the turn's lease, after a load that is still under way. `content`: what the turn left in the slot. */
export const releaseSlot = async (parts: Parts, place: SlotTurn, content?: SlotContent): Promise<void> => {
  const loading = parts.lateLoads.get(place.turnId)
  if (loading === undefined) await endLease(parts, place, content)
  else
    follow(
      parts,
      loading.then(() => endLease(parts, place, content)),
    )
}

const endLease = async (parts: Parts, place: SlotTurn, content?: SlotContent): Promise<void> => {
  parts.claims.drop(place.turnId)
  try {
    await parts.ledger.release({ ...place, content })
  } catch (err) {
    parts.log.warn('a slot was not released; its lease ends by itself', { pod: place.pod, slot: place.slot, err })
  }
}

/** Tracks background work. `close` waits for it. */
export const follow = (parts: Parts, work: Promise<void>): void => {
  parts.background.add(work)
  void work.finally(() => parts.background.delete(work))
}

/**
 * How an action on the slot ended; undefined: `signal` fired, or it took longer than `limitMs`, by default that of
 * calls. Then the engine may still act on the slot, which stays held until the action has ended, and `lateEnd` after it.
 */
export const endInTime = async <T>(
  parts: Parts,
  place: SlotTurn,
  action: Promise<ActionEnd<T>>,
  limits: { readonly signal: AbortSignal; readonly limitMs?: number; readonly lateEnd?: () => Promise<void> },
): Promise<ActionEnd<T> | undefined> => {
  const { signal, limitMs = parts.callTimeoutMs, lateEnd = async () => {} } = limits
  const end = await within(limitMs, action, signal)
  if (end !== undefined) return end
  parts.log.warn('an engine is late with a slot', { pod: place.pod, slot: place.slot })
  follow(
    parts,
    action.then(lateEnd).then(() => releaseSlot(parts, place)),
  )
  return undefined
}
