import type { EngineAccess } from '../../engines/engine-http.ts'
import type { ArtefactStore } from '../artefact-store/artefact-store.ts'
import { createCacheSalts } from '../cache-salts.ts'
import type { KvConnector } from '../kv-connector.ts'
import type { KvLog } from '../kv-log.ts'
import { createSlotClient } from '../slots/slot-client.ts'
import type { SlotLedger } from '../slots/slot-ledger.ts'
import type { StoreIdentity } from '../store-identity.ts'
import { createArtefactFiles } from './artefact-files.ts'
import { fieldsWithoutSlot, slotClaim } from './claim.ts'
import { createEngines } from './engines.ts'
import { finish } from './finish.ts'
import { createFolderOwner } from './folder-owner.ts'
import { createOpenClaims } from './open-claims.ts'
import { type Parts, releaseSlot } from './parts.ts'
import { prepare } from './prepare.ts'
import { checkPromptCache } from './prompt-cache-check.ts'
import { remove, sweep } from './upkeep.ts'

export interface LlamacppSlotsOptions {
  /** Shared by all gateway processes that send turns to the same pods. */
  readonly ledger: SlotLedger
  /** `host:port` of every pod that is configured now, ready or not. No other address is ever called. */
  readonly pods: () => readonly string[]
  /** How the pods are reached. Default: plain HTTP without a credential. */
  readonly access?: EngineAccess | undefined
  /** The folder that every pod has as its `--slot-save-path`, as this process sees it; it reads, renames and removes files there. */
  readonly kvDirectory: string
  /** The session store whose KV lies in the folder. */
  readonly identity: StoreIdentity
  /** Told when the folder belongs to another session store, and when it does no more. While it does, nothing is loaded, stored or swept. */
  readonly onForeignFolder: (isForeign: boolean) => void
  /** Key of the salts that keep sessions apart in engines that honour `cache_salt`. The same for every gateway. */
  readonly secret: string
  /** How long a call to an engine may keep its caller waiting. A load is limited by the turn's budget instead. */
  readonly callTimeoutMs: number
  /** Longest time of a turn: after it, its slot is given up although nobody reported its end. */
  readonly maxTurnMs: number
  /** How long an engine that is late with an action on a slot is followed; the slot stays held meanwhile. Default 120,000. */
  readonly lateTimeoutMs?: number | undefined
  /** Larger artefacts are not stored. Default: no limit. */
  readonly maxArtefactBytes?: number | undefined
  /** Where artefacts rest between turns. Default: in `kvDirectory`. */
  readonly store?: ArtefactStore | undefined
  /** A session of fewer tokens is not stored. */
  readonly minTokens: number
  /** A file younger than this is never removed as an orphan: its announcement may be on its way. */
  readonly orphanGraceMs: number
  readonly log: KvLog
}

/**
 * KV of llama.cpp slots: llama-server (`--slots --slot-save-path DIR --cache-ram 0`) and the embedded engine. A turn has a slot of its own on a
 * pod while it runs there; between turns the session's KV lies in a file that any pod of the same build, model and settings can load.
 */
export const createLlamacppSlotsConnector = (options: LlamacppSlotsOptions): Required<KvConnector> => {
  const client = createSlotClient(options)
  const claims = createOpenClaims(options.ledger, options)
  const folder = createFolderOwner(options)
  const salts = createCacheSalts(options.secret)
  const parts: Parts = {
    ...options,
    claims,
    client,
    engines: createEngines(client, options.pods),
    files: createArtefactFiles(options.kvDirectory, options.store),
    folder,
    isolation: (tenant) => ({ ...fieldsWithoutSlot, cache_salt: salts.withoutSession(tenant, 'session') }),
    saltOf: ({ tenant, session, model }) =>
      salts.of({ tenant, session: { key: session, life: '' }, model, fingerprint: '' }),
    background: new Set(),
  }
  return {
    name: 'llamacpp-slots',
    isolation: parts.isolation,
    constants: fieldsWithoutSlot,
    prepare: (turn, { signal }) => prepare(parts, turn, signal),
    finish: (turn) => finish(parts, turn),
    release: async ({ turnId, claim }) => {
      const { pod, slot } = slotClaim.parse(claim)
      await releaseSlot(parts, { pod, slot, turnId })
    },
    remove: (removal, signal) => remove(parts, removal, signal),
    sweep: (artefacts, signal) => sweep(parts, artefacts, signal),
    check: (pod, signal) => checkPromptCache(parts, pod, signal),
    close: async () => {
      await client.close()
      while (parts.background.size > 0) await Promise.all(parts.background)
      claims.close()
      await folder.close()
    },
  }
}
