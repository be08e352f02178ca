import { nanoid } from 'nanoid'
import type { RedisConnection } from '../../redis/redis-connection.ts'
import { clampCount, type Evicted, type KvLimit, type TenantLimit, type TenantLimits } from '../limits.ts'
import type { Removal, RemovalQueue } from '../removal-queue.ts'
import type { SessionDirectory } from '../session-directory.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import type {
  BeginNamedOutcome,
  BeginNamedTurn,
  BeginOutcome,
  BeginTurn,
  CreateOutcome,
  SessionStore,
  TurnExpiry,
  WholeSession,
} from '../session-store.ts'
import { createRecounting } from './recounting.ts'
import { createScriptRunner, readAll, type ScriptReply } from './session-script-runner.ts'
import { assertId, escapeLine, readTombstone, tenantIn, toRecord, unescapeLine } from './session-text.ts'

export interface RedisSessionStoreOptions {
  /** Its key prefix keeps several gateways' sessions apart in one Redis. `close` closes it. */
  readonly connection: RedisConnection
  /** How long a tombstone is kept. Default 86400. */
  readonly tombstoneSeconds?: number
  /** How long a replaced artefact is kept for loads that are still reading it. Default 5000. */
  readonly supersededGraceMs?: number
  /** The same for every gateway that shares the store. Default: no limit. */
  readonly kvLimit?: KvLimit | undefined
  /** Read at each use; the same for every gateway that shares the store. Default: no limits. */
  readonly tenantLimits?: (() => TenantLimits) | undefined
  /** Called for every unreadable record that was dropped. */
  readonly onCorrupted?: () => void
  /** Called for every eviction of stored KV. */
  readonly onEvicted?: (what: Evicted, count: number) => void
}

/** Artefacts that one script looks up, and drops: a script holds up the turns of all sessions. */
const artefactsPerLookup = 500
const artefactsPerDrop = 200

const readRemoval = (claimed: unknown, claim: string): Removal => {
  const [id, attempt, session, payload] = readAll(claimed, (item) => item)
  return {
    id: String(id),
    session: String(session) as SessionKey,
    kind: String(id).startsWith('s:') ? 'session' : 'artefact',
    payload: typeof payload === 'string' ? unescapeLine(payload) : undefined,
    attempt: Number(attempt),
    claim,
  }
}

const toCreateOutcome = (reply: ScriptReply, tenant: TenantKey): CreateOutcome => {
  const { outcome, detail } = reply
  if (outcome === 'key-reused') return { kind: 'key-reused' }
  if (outcome === 'limited') return { kind: 'limited', limit: toLimit(detail) }
  return { kind: outcome === 'created' ? 'created' : 'existing', record: toRecord(detail, tenant) }
}

const toLimit = (detail: unknown): TenantLimit =>
  detail === 'sessions' || detail === 'stored-bytes' ? detail : 'turns'

const toBeginOutcome = (reply: ScriptReply, tenant: TenantKey): BeginOutcome => {
  const { outcome, nowMs } = reply
  if (outcome === 'active') return { kind: 'active', record: toRecord(reply.detail, tenant), nowMs }
  if (outcome === 'expired') return { kind: 'expired', ...readTombstone(reply.detail), cause: 'time', nowMs }
  if (outcome === 'limited') return { kind: 'limited', limit: toLimit(reply.detail) }
  return { kind: outcome === 'deleted' ? 'deleted' : 'unknown' }
}

const toBeginNamedOutcome = (reply: ScriptReply, { tenant, earlier }: BeginNamedTurn): BeginNamedOutcome => {
  const { outcome, detail, nowMs } = reply
  const hasRecord = outcome === 'created' || outcome === 'active'
  const isEarlier = hasRecord && earlier?.tenant.startsWith(tenantIn(detail)) === true
  const owner = isEarlier ? earlier.tenant : tenant
  return outcome === 'created'
    ? { kind: 'created', record: toRecord(detail, owner), nowMs }
    : toBeginOutcome(reply, owner)
}

const toWholeSession = (snapshot: unknown, tenant: TenantKey): WholeSession => {
  const branches = Array.isArray(snapshot) ? snapshot[3] : undefined
  return { ...toRecord(snapshot, tenant), branches: readAll(branches, (branch) => toRecord(branch, tenant)) }
}

const turnArgs = ({ key, tenant, turnId }: Pick<BeginTurn, 'key' | 'tenant' | 'turnId'>): readonly string[] => [
  assertId(key),
  assertId(tenant),
  assertId(turnId),
]

const expiryArgs = (expiry: TurnExpiry): readonly (string | number)[] =>
  expiry.kind === 'set' ? ['set', clampCount(expiry.ttlSeconds), clampCount(expiry.expiresAtMs)] : [expiry.kind, '', '']

/**
 * Sessions and their removal queue in one Redis (7.0 or newer), shared by any number of gateways. Every method is one
 * Lua script: one atomic step, one round trip. Redis Cluster is not supported: a script touches keys of several slots.
 * Redis must not evict keys (`maxmemory-policy noeviction`); when it is full, creating fails, while reading, deleting
 * and expiring go on. Deadlines follow the server's clock: servers that replace each other must agree on the time.
 */
export const createRedisSessionStore = ({
  connection,
  tombstoneSeconds = 86_400,
  supersededGraceMs = 5000,
  kvLimit,
  tenantLimits = () => ({}),
  onCorrupted = () => {},
  onEvicted = () => {},
}: RedisSessionStoreOptions): SessionStore & RemovalQueue & SessionDirectory => {
  const run = createScriptRunner({ connection, tombstoneSeconds, onCorrupted })
  const maxKvBytes = kvLimit === undefined ? '' : clampCount(kvLimit.maxBytes)
  /** What a Redis without a name is called: once it is known, as before it lost its data. */
  let storeName = nanoid()
  const limitArgs = (...names: readonly (keyof TenantLimits)[]): readonly (string | number)[] => {
    const limits = tenantLimits()
    return names.map((name) => limits[name] ?? '')
  }
  const recounting = createRecounting((part, cursor, limit) => run('recount-kv', [part, cursor, limit]))
  return {
    async create(wanted) {
      const { tenant, sealedId, model, ttlSeconds, pod, leaseMs, retryOf } = wanted
      const retry = retryOf
        ? [assertId(retryOf.digest), retryOf.bodyDigest, Math.max(1, clampCount(retryOf.rememberMs)), retryOf.use]
        : ['', '', '', '']
      const times = [leaseMs, ttlSeconds].map(clampCount)
      const texts = [sealedId, model, pod ?? ''].map(escapeLine)
      const limits = limitArgs('maxSessions', 'maxStoredBytes', 'maxTurns')
      return toCreateOutcome(
        await run('create', [...turnArgs(wanted), ...times, ...texts, ...retry, ...limits]),
        tenant,
      )
    },

    async begin(turn) {
      const args = [...turnArgs(turn), clampCount(turn.leaseMs), ...limitArgs('maxTurns', 'maxSessions')]
      return toBeginOutcome(await run('begin', args), turn.tenant)
    },

    async beginNamed(turn) {
      const { leaseMs, ttlSeconds, sealedId, model, maxNamedSessions, marks, earlier } = turn
      const other = earlier === undefined ? ['', ''] : [assertId(earlier.key), assertId(earlier.tenant)]
      const texts = [sealedId, model].map(escapeLine)
      const numbers = [leaseMs, ttlSeconds].map(clampCount)
      const args = [...turnArgs(turn), ...numbers, ...texts, maxNamedSessions, marks.map(assertId).join(' ')]
      const limits = limitArgs('maxTurns', 'maxSessions', 'maxStoredBytes')
      return toBeginNamedOutcome(await run('begin-named', [...args, ...limits, ...other]), turn)
    },

    async complete(turn) {
      const { usage } = turn
      const tokens = [usage.prompt, usage.output, usage.cached].map(clampCount)
      const args = [
        ...turnArgs(turn),
        escapeLine(turn.pod),
        ...tokens,
        ...expiryArgs(turn.expiry),
        ...limitArgs('maxTurns'),
      ]
      const reply = await run('complete', args)
      if (reply.outcome === 'gone') return { kind: 'gone' }
      return {
        kind: 'completed',
        record: toRecord(reply.detail, turn.tenant),
        isCounted: reply.outcome === 'completed',
      }
    },

    async abandon({ key, tenant, turnId }) {
      await run('abandon', [key, turnId, tenant, ...limitArgs('maxTurns')])
    },

    async commitKv({ key, createdAtMs, kv }) {
      const sizes = [kv.tokens, kv.bytes, kv.turn].map(clampCount)
      const artefact = [assertId(kv.artefactId), escapeLine(kv.payload), ...sizes]
      const limits = [supersededGraceMs, maxKvBytes, createdAtMs, ...limitArgs('maxStoredBytes')]
      for (;;) {
        const reply = await run('commit-kv', [key, ...artefact, ...limits])
        const evicted = Number(reply.detail)
        if (evicted > 0) onEvicted('kv-size', evicted)
        if (reply.outcome !== 'more') return reply.outcome === 'committed'
      }
    },

    async setKvStatus({ key, status }) {
      await run('set-kv-status', [key, escapeLine(status)])
    },

    async get({ key, tenant }) {
      const { outcome, detail } = await run('get', [key, tenant])
      return outcome === 'found' ? toWholeSession(detail, tenant) : undefined
    },

    async list({ tenant, limit, after }) {
      for (;;) {
        const { outcome, detail } = await run('list', [tenant, limit, after ?? ''])
        const records = readAll(detail, (snapshot) => toWholeSession(snapshot, tenant))
        if (outcome !== 'again') return { records, hasMore: outcome === 'more' }
      }
    },

    async setTtl({ key, tenant, ttlSeconds }) {
      const { outcome, detail } = await run('set-ttl', [key, tenant, clampCount(ttlSeconds)])
      return outcome === 'found' ? toWholeSession(detail, tenant) : undefined
    },

    async remove({ key, tenant }) {
      return (await run('remove', [key, tenant])).outcome === 'removed'
    },

    async find(key) {
      const { outcome, detail } = await run('find', [key])
      return outcome === 'found' ? toWholeSession(detail, tenantIn(detail)) : undefined
    },

    async page({ tenant = '', limit, after = '' }) {
      const place = /^\d{1,15}$/.test(after) ? after : 0
      const { outcome, detail } = await run('page', [tenant, place, limit])
      const [next, page] = readAll(detail, (item) => item)
      const records = readAll(page, (snapshot) => toWholeSession(snapshot, tenantIn(snapshot)))
      return { records, next: outcome === 'more' ? String(next) : undefined }
    },

    async countNamed(tenant) {
      return Number((await run('count-named', [tenant])).detail)
    },

    async identity() {
      storeName = String((await run('identity', [storeName])).detail)
      return storeName
    },

    async close() {
      await connection.close()
    },

    async announce({ artefactId, session, payload, graceMs }) {
      await run('announce', [assertId(artefactId), assertId(session), escapeLine(payload), clampCount(graceMs)])
    },

    async expireDue(limit) {
      const [ended = 0, looked = 0] = readAll((await run('expire-due', [limit])).detail, Number)
      return { ended, hasMore: looked >= limit }
    },

    async evict(limit) {
      if (kvLimit === undefined) return 0
      const dropped = Number((await run('evict', [clampCount(kvLimit.maxBytes * kvLimit.threshold), limit])).detail)
      if (dropped > 0) onEvicted('kv-size', dropped)
      return dropped
    },

    async recount(limit) {
      return recounting(tenantLimits().maxStoredBytes !== undefined, limit)
    },

    async claim({ limit, leaseMs }) {
      const claim = nanoid(12)
      const { detail } = await run('claim', [limit, clampCount(leaseMs), claim])
      return readAll(detail, (claimed) => readRemoval(claimed, claim))
    },

    async ack(removals) {
      const args = removals.flatMap(({ id, claim }) => [id, claim])
      await run('ack', args)
    },

    async retryLater({ id, claim }, delayMs) {
      await run('retry-later', [id, clampCount(delayMs), claim])
    },

    async knownArtefacts(artefactIds) {
      const known = new Set<string>()
      for (let start = 0; start < artefactIds.length; start += artefactsPerLookup) {
        const reply = await run('known-artefacts', artefactIds.slice(start, start + artefactsPerLookup))
        for (const artefactId of readAll(reply.detail, String)) known.add(artefactId)
      }
      return known
    },

    async dropArtefacts({ artefactIds, reason }) {
      let dropped = 0
      for (let start = 0; start < artefactIds.length; start += artefactsPerDrop) {
        const some = artefactIds.slice(start, start + artefactsPerDrop).map(assertId)
        dropped += Number((await run('drop-artefacts', [escapeLine(reason), ...some])).detail)
      }
      return dropped
    },

    async counts() {
      const [removals = 0, sessions = 0] = readAll((await run('totals', [])).detail, Number)
      return { removals, sessions }
    },

    async sizes() {
      const [, , kvBytes] = readAll((await run('totals', [])).detail, Number)
      return { kvBytes: kvLimit === undefined ? undefined : kvBytes, sessionBytes: undefined }
    },
  }
}
