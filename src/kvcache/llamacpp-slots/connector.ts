import { bytes, filePath, isByIp, share } from '../../options/values.ts'
import { type ArtefactStore, loadArtefactStore } from '../artefact-store/artefact-store.ts'
import { type ConnectorOptions, type ConnectorParts, defineConnector, required } from '../connector-definition.ts'
import type { KvConnector } from '../kv-connector.ts'
import { createMemorySlotLedger } from '../slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../slots/redis/redis-slot-ledger.ts'
import { createSlotClient } from '../slots/slot-client.ts'
import type { SlotLedger } from '../slots/slot-ledger.ts'
import { createArtefactFiles } from './artefact-files.ts'
import { fieldsWithoutSlot, slotClaim } from './claim.ts'
import { checkEngine } from './engine-check.ts'
import { createEngines } from './engines.ts'
import { finish } from './finish.ts'
import { createFolderOwner } from './folder-owner.ts'
import { createOpenClaims } from './open-claims.ts'
import { type Parts, releaseSlot } from './parts.ts'
import { prepare } from './prepare.ts'
import { remove, sweep } from './upkeep.ts'

const options = {
  storeModule: filePath
    .optional()
    .describe(
      'Path of an ES module that exports `createArtefactStore`, which stores KV of `llamacpp-slots` instead of the folder.',
    ),
  maxStoreBytes: bytes(1_024, 1_125_899_906_842_624)
    .optional()
    .describe(
      'Most bytes of stored KV with `llamacpp-slots`. The same for every gateway. Beyond, KV of expired sessions is removed, then the least recently used, weighted by size; never KV of a session in a turn.',
    ),
  storeThreshold: share
    .default(0.85)
    .describe(
      'Share of `kv.maxStoreBytes` to which each sweep reduces stored KV, and the most that one session may store.',
    ),
}

/**
 * KV of llama.cpp slots: llama-server (`--slots --slot-save-path DIR --cache-ram 0`) and the embedded engine. A running
 * turn holds a slot; between turns the session's KV is a file that any pod of the same build, model and settings can
 * load. `kv.directory`: the pods' `--slot-save-path` as seen by this process, which reads, renames and removes files.
 */
export const createLlamacppSlotsConnector = (
  kv: Pick<ConnectorOptions, 'directory' | 'callTimeoutMs' | 'minTokens' | 'modelVersion'>,
  pool: Omit<ConnectorParts, 'http'>,
  own: {
    /** Default: the pool's. */
    readonly ledger?: SlotLedger
    /** How long an action on a slot may take; the slot stays held meanwhile. Default: as long as a turn. */
    readonly lateTimeoutMs?: number
    /** Where artefacts rest between turns. Default: in the folder. */
    readonly store?: ArtefactStore | undefined
  } = {},
): Required<KvConnector> => {
  const { redis, salts } = pool
  const { ledger = redis === undefined ? createMemorySlotLedger() : createRedisSlotLedger(redis) } = own
  const directory = required(kv.directory)
  ledger.onRelease(pool.roomAt)
  const client = createSlotClient({ lateTimeoutMs: pool.maxTurnMs, ...pool, ...kv, ...own })
  let known: readonly string[] | undefined
  const knownPods = () => {
    const pods = pool.pods().filter(isByIp)
    known = pods.length === 0 && known === undefined ? undefined : pods
    return known
  }
  const parts: Parts = {
    ...pool,
    ...kv,
    ledger,
    claims: createOpenClaims(ledger, pool),
    client,
    engines: createEngines(client, pool.pods, kv.modelVersion),
    knownPods,
    files: createArtefactFiles(directory, own.store),
    folder: createFolderOwner(directory, pool),
    isolation: (tenant) => ({ ...fieldsWithoutSlot, cache_salt: salts.withoutSession(tenant, 'session') }),
    saltOf: ({ tenant, session, model }) =>
      salts.of({ tenant, session: { key: session, life: '' }, model, fingerprint: '' }),
    lateLoads: new Map(),
    background: new Set(),
  }
  return {
    isolation: parts.isolation,
    constants: fieldsWithoutSlot,
    prepare: (turn, budget) => prepare(parts, turn, budget),
    finish: (turn) => finish(parts, turn),
    release: async ({ turnId, claim }) => {
      const { pod, slot } = slotClaim.parse(claim)
      if (slot >= 0) await releaseSlot(parts, { pod, slot, turnId })
    },
    remove: (removal, signal) => remove(parts, removal, signal),
    sweep: (artefacts, signal) => sweep(parts, artefacts, signal),
    check: (pod, signal) => checkEngine(parts, pod, signal),
    close: async () => {
      await client.close()
      while (parts.background.size > 0) await Promise.all(parts.background)
      parts.claims.close()
      await parts.files.close()
      await parts.folder.close()
    },
  }
}

export const llamacppSlots = defineConnector({
  name: 'llamacpp-slots',
  summary: 'slots of llama-server and the embedded engine',
  loads: true,
  usesDirectory: true,
  options,
  check: ({ directory }) =>
    directory === undefined
      ? [{ option: 'directory', message: 'the connector llamacpp-slots needs the folder that the pods share' }]
      : [],
  create: async (kv, pool) =>
    createLlamacppSlotsConnector(kv, pool, {
      store: kv.storeModule === undefined ? undefined : await loadArtefactStore(kv.storeModule),
    }),
})
