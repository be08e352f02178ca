import type { TenantKey } from '../../sessions/session-record.ts'
import type { ConnectorOptions, ConnectorParts } from '../connector-definition.ts'
import type { EngineFields, KvTurn } from '../kv-connector.ts'
import type { ActionEnd, SlotClient } from '../slots/slot-client.ts'
import type { SlotContent, SlotLedger, SlotTurn } from '../slots/slot-ledger.ts'
import type { ArtefactFiles } from './artefact-files.ts'
import type { Background } from './background.ts'
import type { Engines } from './engines.ts'
import type { FolderOwner } from './folder-owner.ts'
import type { OpenClaims } from './open-claims.ts'

/** What the connector's operations share. */
export interface Parts
  extends Pick<ConnectorParts, 'pods' | 'orphanGraceMs' | 'maxArtefactBytes' | 'log'>,
    Pick<ConnectorOptions, 'minTokens'> {
  readonly ledger: SlotLedger
  readonly claims: OpenClaims
  readonly client: SlotClient
  readonly engines: Engines
  readonly files: ArtefactFiles
  readonly folder: Pick<FolderOwner, 'isOurs'>
  /** Fields of a turn that holds no slot. */
  readonly isolation: (tenant: TenantKey) => EngineFields
  /** The salt of a turn that holds a slot. */
  readonly saltOf: (turn: KvTurn) => string
  readonly background: Background
}

/** Ends the turn's lease; `content`: what it left in the slot. A ledger that cannot be reached costs the rest of the lease. */
export const releaseSlot = async (parts: Parts, place: SlotTurn, content?: SlotContent): Promise<void> => {
  const { pod, slot, turnId } = place
  parts.claims.drop(turnId)
  try {
    await parts.ledger.release({ pod, slot, turnId, ...(content === undefined ? {} : { content }) })
  } catch (err) {
    parts.log.warn('a slot was not released; its lease ends by itself', { pod, slot, err })
  }
}

/** Keeps the slot while an engine that is late will still act on it. */
export const releaseAfter = (parts: Parts, place: SlotTurn, late: Promise<ActionEnd<unknown>>): void => {
  parts.log.warn('an engine is late with a slot', { pod: place.pod, slot: place.slot })
  parts.background.run(
    'late slot',
    late.then(() => releaseSlot(parts, place)),
  )
}
