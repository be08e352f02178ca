import type { KvLog } from '../kv-log.ts'
import type { SlotClient } from '../slots/slot-client.ts'
import type { SlotLedger } from '../slots/slot-ledger.ts'
import type { ArtefactDepot } from './artefact-depot.ts'
import type { ArtefactFolder } from './artefact-folder.ts'
import type { Background } from './background.ts'
import type { EngineIdentities } from './engine-identity.ts'
import type { SizeForecast } from './size-forecast.ts'
import type { StrayWatch } from './stray.ts'

/** What the connector's operations share. */
export interface Parts {
  readonly ledger: SlotLedger
  readonly client: SlotClient
  readonly identities: EngineIdentities
  /** Shared with the engines. */
  readonly folder: ArtefactFolder
  /** Where artefacts rest between turns. */
  readonly depot: ArtefactDepot
  readonly sizes: SizeForecast
  readonly background: Background
  /** All pods that are configured now. No other address is ever called. */
  readonly pods: () => readonly string[]
  readonly log: KvLog
  readonly strays: StrayWatch
  readonly limits: Limits
}

export interface Limits {
  /** How long one call to an engine may keep a turn waiting. */
  readonly callTimeoutMs: number
  /** How long a late action on a slot is followed to learn how it ended. */
  readonly lateTimeoutMs: number
  /** How long a turn may hold its slot. */
  readonly leaseMs: number
  /** Larger artefacts are not stored; undefined: there is no limit. */
  readonly maxArtefactBytes: number | undefined
  /** Fewer tokens are not worth a file. */
  readonly minTokens: number
  /** How long an offload waits for a slot that still shows as busy. */
  readonly idleWaitMs: number
  /** Files younger than this are never taken for orphans. */
  readonly orphanGraceMs: number
}

/** How long the turn that fills a slot may take before another one does: the check of the file, the call, and the cleaning up after it. */
export const loadMsOf = ({ callTimeoutMs }: Limits): number => 3 * callTimeoutMs + 1_000
