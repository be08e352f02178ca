import type { EngineAccess } from '../../engines/engine-http.ts'
import type { ArtefactStore } from '../artefact-store/artefact-store.ts'
import type { KvConnector } from '../kv-connector.ts'
import type { KvLog } from '../kv-log.ts'
import { createSlotClient } from '../slots/slot-client.ts'
import type { SlotLedger } from '../slots/slot-ledger.ts'
import { createArtefactFolder } from './artefact-folder.ts'
import { attach } from './attach.ts'
import { createBackground } from './background.ts'
import { parseClaim } from './claim.ts'
import { createEngineIdentities } from './engine-identity.ts'
import { createFolderDepot } from './folder-depot.ts'
import { offload } from './offload.ts'
import type { Parts } from './parts.ts'
import { reconcile } from './reconcile.ts'
import { createRemoteDepot } from './remote-depot.ts'
import { remove } from './remove.ts'
import { createSizeForecast } from './size-forecast.ts'
import { createStrayWatch, detach } from './stray.ts'

export interface LlamacppSlotsOptions {
  /** Shared by all gateway processes that send turns to the same pods. */
  readonly ledger: SlotLedger
  /** `host:port` of every pod that is configured now, ready or not. No other address is ever called. */
  readonly pods: () => readonly string[]
  /** How the pods are reached. Default: plain HTTP without a credential. */
  readonly access?: EngineAccess | undefined
  /** The folder that every pod has as its `--slot-save-path`, as this process sees it; it reads, renames and removes files there. */
  readonly kvDirectory: string
  /** How long one call to an engine may keep a turn or a cleaner waiting. */
  readonly callTimeoutMs: number
  /** How long a turn may hold its slot; a gateway that dies lets it go by that. Longer than the longest answer. */
  readonly leaseMs: number
  /** How long an engine that is late with an action on a slot is followed; the slot stays closed meanwhile. Default 120,000. */
  readonly lateTimeoutMs?: number
  /** Larger artefacts are not stored. Default: no limit. */
  readonly maxArtefactBytes?: number | undefined
  /** Where artefacts rest between turns. Default: in `kvDirectory`. */
  readonly store?: ArtefactStore | undefined
  /** A session of fewer tokens is not stored. Default 16. */
  readonly minTokens?: number
  /** How long an offload waits for a slot that still shows as busy after its turn has ended. Default 250. */
  readonly idleWaitMs?: number
  /** A file younger than this is never removed as an orphan: its announcement may be on its way. Default 120,000. */
  readonly orphanGraceMs?: number
  /**
   * How long after its start a gateway looks for turns that Envoy forwarded without it: Envoy asks for health every second, and an answer may
   * take a while. Default 30,000.
   */
  readonly strayWatchMs?: number
  /** Calls at a time to one pod; questions and actions count apart. Default 4. */
  readonly callsPerPod?: number
  readonly log: KvLog
}

/** A connector that holds connections to engines. */
export interface LlamacppSlotsConnector extends KvConnector {
  /** Breaks off all calls to engines and settles what was under way. */
  close(): Promise<void>
}

/**
 * KV of llama.cpp slots: llama-server (`--slots --slot-save-path DIR`, no `--cache-ram`) and the embedded engine. A session has a slot of its
 * own on a pod while it runs there; between turns its KV lies in a file that any pod of the same build, model and settings can restore.
 */
export const createLlamacppSlotsConnector = (options: LlamacppSlotsOptions): LlamacppSlotsConnector => {
  const lateTimeoutMs = options.lateTimeoutMs ?? 120_000
  const client = createSlotClient({
    callTimeoutMs: options.callTimeoutMs,
    lateTimeoutMs,
    callsPerPod: options.callsPerPod ?? 4,
    access: options.access,
  })
  const folder = createArtefactFolder(options.kvDirectory)
  const { store, log } = options
  const parts: Parts = {
    ledger: options.ledger,
    client,
    identities: createEngineIdentities(client),
    folder,
    depot: store === undefined ? createFolderDepot(folder) : createRemoteDepot({ folder, store, log }),
    sizes: createSizeForecast(),
    background: createBackground(options.log),
    pods: options.pods,
    log: options.log,
    strays: createStrayWatch(options.strayWatchMs ?? 30_000),
    limits: {
      callTimeoutMs: options.callTimeoutMs,
      lateTimeoutMs,
      leaseMs: options.leaseMs,
      maxArtefactBytes: options.maxArtefactBytes,
      minTokens: options.minTokens ?? 16,
      idleWaitMs: options.idleWaitMs ?? 250,
      orphanGraceMs: options.orphanGraceMs ?? 120_000,
    },
  }
  return {
    name: 'llamacpp-slots',
    attach: (turn, kv, { signal }) => attach(parts, turn, kv, signal),
    // A turn without a session takes any slot that no session holds.
    fieldsWithoutSession: () => ({}),
    offload: (request) => offload(parts, request),
    detach: (turn, claim, signal) => detach(parts, turn, parseClaim(claim), signal),
    remove: (removal, signal) => remove(parts, removal, signal),
    reconcile: (isKnown, signal, onUseless = async () => {}) => reconcile(parts, { isKnown, onUseless }, signal),
    close: async () => {
      await client.close()
      await parts.background.drained()
    },
  }
}
