import { batchesOf } from '../../async/batches-of.ts'
import { clampCount, type Evicted, type KvLimit, type TenantLimits } from '../limits.ts'
import type { RemovalQueue } from '../removal-queue.ts'
import type { SessionKey } from '../session-record.ts'
import type { SessionStore } from '../session-store.ts'
import { endDue } from './end-due.ts'
import { everyPartition } from './every-partition.ts'
import type { Partitions } from './partitions.ts'
import { createRecounting } from './recounting.ts'
import { readAll, type ScriptReply } from './session-script-runner.ts'
import { assertId, escapeLine } from './session-text.ts'
import type { TenantLedger } from './tenant-ledger.ts'
import { readTenantTotals, readTotals } from './totals.ts'

/** Artefacts that one script looks up, drops and evicts: it holds up the turns of all sessions on its server. */
const artefactsPerLookup = 500
const artefactsPerDrop = 200
const mostEvicted = 16

interface Candidate {
  readonly artefactId: string
  readonly bytes: number
  readonly score: number
}

const toCandidate = (item: unknown): Candidate => {
  const [artefactId, bytes, score] = readAll(item, (part) => part)
  return { artefactId: String(artefactId), bytes: Number(bytes), score: Number(score) }
}

/** Stored KV of sessions, and which of it goes when there is too much in all partitions together. */
export const createRedisStoredKv = (parts: {
  readonly partitions: Partitions
  readonly ledger: TenantLedger
  readonly supersededGraceMs: number
  readonly kvLimit: KvLimit | undefined
  readonly tenantLimits: () => TenantLimits
  readonly onEvicted: (what: Evicted, count: number) => void
}) => {
  const { partitions, ledger, kvLimit, tenantLimits } = parts

  const drop = async (artefactIds: readonly string[], reason: string, isEviction: '1' | ''): Promise<number> => {
    let dropped = 0
    for (const [partition, ids] of await partitions.group(artefactIds, (id) => id)) {
      for (const some of batchesOf(ids, artefactsPerDrop)) {
        const args = [escapeLine(reason), isEviction, ...some.map(assertId)]
        dropped += readAll((await partition.run('drop-artefacts', args)).detail, String).length
      }
    }
    return dropped
  }

  /**
   * Evicts KV of the greatest scores until `excessOf` the bytes stored are gone, at most `limit` artefacts, and none of the
   * session `spared`. Resolves to how many.
   */
  const evictSome = async (
    excessOf: (bytesOfAll: number) => number,
    limit: number,
    spared?: SessionKey,
  ): Promise<number> => {
    const replies = await everyPartition(partitions, (partition) =>
      partition.run('eviction-candidates', [Math.min(limit, mostEvicted), spared?.slice(0, 22) ?? '']),
    )
    let bytesOfAll = 0
    const candidates: Candidate[] = []
    for (const { detail } of replies) {
      const [bytes, found] = readAll(detail, (part) => part)
      bytesOfAll += Number(bytes)
      candidates.push(...readAll(found, toCandidate))
    }
    let excess = excessOf(bytesOfAll)
    const chosen: string[] = []
    for (const { artefactId, bytes } of candidates.sort((a, b) => b.score - a.score)) {
      if (excess <= 0 || chosen.length === Math.min(limit, mostEvicted)) break
      chosen.push(artefactId)
      excess -= bytes
    }
    const dropped = chosen.length === 0 ? 0 : await drop(chosen, 'kv_evicted', '1')
    if (dropped > 0) parts.onEvicted('kv-size', dropped)
    return dropped
  }

  const recounting = createRecounting(partitions)

  const commit = async ({ key, tenant, createdAtMs, kv }: Commit, isLast: boolean): Promise<ScriptReply> => {
    const { maxStoredBytes } = tenantLimits()
    const partition = await partitions.of(key)
    const sizes = [kv.tokens, kv.bytes, kv.turn].map(clampCount)
    const artefact = [assertId(kv.artefactId), escapeLine(kv.payload), ...sizes, parts.supersededGraceMs, createdAtMs]
    const limits =
      kvLimit === undefined
        ? ['', 0]
        : [clampCount(kvLimit.maxBytes), (await readTotals(partitions, partition)).kvBytes]
    const ofTenant =
      maxStoredBytes === undefined
        ? ['', 0]
        : [maxStoredBytes, (await readTenantTotals(partitions, tenant, partition)).kvBytes]
    return partition.run('commit-kv', [key, ...artefact, ...limits, ...ofTenant, isLast ? '1' : ''])
  }

  return {
    async commitKv(change) {
      for (let isLast = false; ; ) {
        const { outcome, detail } = await commit(change, isLast)
        const isOfTenant = outcome === 'committed' || outcome === 'tenant-full'
        if (isOfTenant && tenantLimits().maxStoredBytes !== undefined) {
          await ledger.noteRefused(change.tenant, outcome === 'committed' ? 0 : change.kv.bytes)
        }
        if (outcome !== 'no-room') return outcome === 'committed'
        const excess = Number(detail)
        isLast =
          (await endDue(partitions)).ended === 0 && (await evictSome(() => excess, mostEvicted, change.key)) === 0
      }
    },

    async evict(limit) {
      if (kvLimit === undefined) return 0
      const excessOf = (bytes: number): number => bytes - kvLimit.maxBytes * kvLimit.threshold
      if (excessOf((await readTotals(partitions)).kvBytes) <= 0) return 0
      while ((await endDue(partitions)).ended > 0) {}
      let dropped = 0
      for (let more = limit; more > 0; more = limit - dropped) {
        const some = await evictSome(excessOf, more)
        if (some === 0) break
        dropped += some
      }
      return dropped
    },

    recount: (limit) => recounting(tenantLimits().maxStoredBytes !== undefined, limit),

    dropArtefacts: ({ artefactIds, reason }) => drop(artefactIds, reason, ''),

    async knownArtefacts(artefactIds) {
      const known = new Set<string>()
      for (const [partition, ids] of await partitions.group(artefactIds, (id) => id)) {
        for (const some of batchesOf(ids, artefactsPerLookup)) {
          for (const id of readAll((await partition.run('known-artefacts', some)).detail, String)) known.add(id)
        }
      }
      return known
    },
  } satisfies Partial<SessionStore & RemovalQueue>
}

type Commit = Parameters<SessionStore['commitKv']>[0]
