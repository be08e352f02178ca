import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { Evicted, KvLimit } from '../limits.ts'
import { clampCount } from '../limits.ts'
import type { SessionRecord, TenantKey } from '../session-record.ts'
import type { BeginOutcome, BeginTurn, CreateOutcome, SessionStore, TurnExpiry } from '../session-store.ts'
import { readAll, type ScriptReply, type ScriptRunner, toStoreFault } from './session-script-runner.ts'
import { assertId, escapeLine, readSnapshot, readTombstone, toRecord } from './session-text.ts'

const recordOf = ({ detail }: ScriptReply, tenant: TenantKey): SessionRecord => toRecord(readSnapshot(detail), tenant)

const toCreateOutcome = (reply: ScriptReply, tenant: TenantKey): CreateOutcome =>
  reply.outcome === 'key-reused'
    ? { kind: 'key-reused' }
    : { kind: reply.outcome === 'created' ? 'created' : 'existing', record: recordOf(reply, tenant) }

const toBeginOutcome = (reply: ScriptReply, tenant: TenantKey): BeginOutcome => {
  const { outcome, nowMs } = reply
  if (outcome === 'active') return { kind: 'active', record: recordOf(reply, tenant), nowMs }
  if (outcome === 'expired') return { kind: 'expired', ...readTombstone(reply.detail), cause: 'time', nowMs }
  return { kind: outcome === 'deleted' ? 'deleted' : 'unknown' }
}

const turnArgs = ({ key, tenant, turnId }: Pick<BeginTurn, 'key' | 'tenant' | 'turnId'>): readonly string[] => [
  assertId(key),
  assertId(tenant),
  assertId(turnId),
]

const expiryArgs = (expiry: TurnExpiry): readonly (string | number)[] =>
  expiry.kind === 'set' ? ['set', clampCount(expiry.ttlSeconds), clampCount(expiry.expiresAtMs)] : [expiry.kind, '', '']

/** The sessions' half of the Redis store. Every method is one script. */
export const createRedisSessions = (options: {
  readonly connection: RedisConnection
  readonly run: ScriptRunner
  readonly supersededGraceMs: number
  readonly kvLimit: KvLimit | undefined
  readonly onEvicted: (what: Evicted, count: number) => void
}): SessionStore => {
  const { connection, run, supersededGraceMs, kvLimit, onEvicted } = options
  const maxKvBytes = kvLimit === undefined ? '' : clampCount(kvLimit.maxBytes)
  return {
    async create({ key, tenant, sealedId, model, ttlSeconds, pod, turnId, leaseMs, retryOf }) {
      const retry = retryOf
        ? [assertId(retryOf.digest), retryOf.bodyDigest, Math.max(1, clampCount(retryOf.rememberMs)), retryOf.use]
        : ['', '', '', '']
      const lease = [assertId(turnId), clampCount(leaseMs), clampCount(ttlSeconds)]
      const texts = [sealedId, model, pod ?? ''].map(escapeLine)
      return toCreateOutcome(
        await run('create', [assertId(key), assertId(tenant), ...lease, ...texts, ...retry]),
        tenant,
      )
    },

    async begin(turn) {
      return toBeginOutcome(await run('begin', [...turnArgs(turn), clampCount(turn.leaseMs)]), turn.tenant)
    },

    async complete(turn) {
      const { usage } = turn
      const tokens = [usage.prompt, usage.output, usage.cached].map(clampCount)
      const args = [...turnArgs(turn), escapeLine(turn.pod), ...tokens, ...expiryArgs(turn.expiry)]
      const reply = await run('complete', args)
      return reply.outcome === 'gone' ? { kind: 'gone' } : { kind: 'completed', record: recordOf(reply, turn.tenant) }
    },

    async abandon({ key, turnId }) {
      await run('abandon', [key, turnId])
    },

    async commitKv({ key, kv }) {
      const sizes = [kv.tokens, kv.bytes, kv.turn].map(clampCount)
      const artefact = [assertId(kv.artefactId), escapeLine(kv.payload), ...sizes]
      for (;;) {
        const reply = await run('commit-kv', [key, ...artefact, supersededGraceMs, maxKvBytes])
        const evicted = Number(reply.detail)
        if (evicted > 0) onEvicted('kv-size', evicted)
        if (reply.outcome !== 'more') return reply.outcome === 'committed'
      }
    },

    async setKvStatus({ key, status }) {
      await run('set-kv-status', [key, escapeLine(status)])
    },

    async dropKv({ artefactId, reason }) {
      await run('drop-artefacts', [escapeLine(reason), artefactId])
    },

    async get({ key, tenant }) {
      const reply = await run('get', [key, tenant])
      return reply.outcome === 'found' ? recordOf(reply, tenant) : undefined
    },

    async list({ tenant, limit, after }) {
      const { outcome, detail } = await run('list', [tenant, limit, after ?? ''])
      const records = readAll(detail, (snapshot) => toRecord(readSnapshot(snapshot), tenant))
      return { records, hasMore: outcome === 'more' }
    },

    async setTtl({ key, tenant, ttlSeconds }) {
      const reply = await run('set-ttl', [key, tenant, clampCount(ttlSeconds)])
      return reply.outcome === 'found' ? recordOf(reply, tenant) : undefined
    },

    async remove({ key, tenant }) {
      return (await run('remove', [key, tenant])).outcome === 'removed'
    },

    async ping() {
      await toStoreFault(connection.ping())
    },

    async close() {
      await connection.close()
    },
  }
}
