import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { Evicted, KvLimit } from '../limits.ts'
import { clampCount } from '../limits.ts'
import type { TenantKey } from '../session-record.ts'
import type {
  BeginOutcome,
  BeginTurn,
  CompleteOutcome,
  CreateOutcome,
  SessionPage,
  SessionStore,
  TurnExpiry,
} from '../session-store.ts'
import { type ScriptReply, type ScriptRunner, toStoreFault } from './session-script-runner.ts'
import { assertId, escapeLine, readSnapshot, readTombstone, toRecord, toSessionForTurn } from './session-text.ts'

const unexpected = (reply: ScriptReply): Error => new Error(`A session script answered with outcome ${reply.outcome}`)

const toCreateOutcome = (reply: ScriptReply, tenant: TenantKey): CreateOutcome => {
  switch (reply.outcome) {
    case 'created':
    case 'existing':
      return { kind: reply.outcome, record: toRecord(readSnapshot(reply.detail), tenant) }
    case 'key-reused':
      return { kind: 'key-reused' }
    default:
      throw unexpected(reply)
  }
}

const toBeginOutcome = (reply: ScriptReply, tenant: TenantKey): BeginOutcome => {
  switch (reply.outcome) {
    case 'active':
      return { kind: 'active', record: toSessionForTurn(readSnapshot(reply.detail), tenant), nowMs: reply.nowMs }
    case 'expired':
      return { kind: 'expired', ...readTombstone(reply.detail), cause: 'time', nowMs: reply.nowMs }
    case 'deleted':
    case 'unknown':
      return { kind: reply.outcome }
    default:
      throw unexpected(reply)
  }
}

const toCompleteOutcome = (reply: ScriptReply, tenant: TenantKey): CompleteOutcome => {
  switch (reply.outcome) {
    case 'completed':
      return { kind: 'completed', record: toRecord(readSnapshot(reply.detail), tenant) }
    case 'gone':
      return { kind: 'gone' }
    default:
      throw unexpected(reply)
  }
}

const toPage = (reply: ScriptReply, tenant: TenantKey): SessionPage => {
  if (!Array.isArray(reply.detail)) throw unexpected(reply)
  return {
    records: reply.detail.map((snapshot) => toRecord(readSnapshot(snapshot), tenant)),
    hasMore: reply.outcome === 'more',
  }
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
      return toCompleteOutcome(await run('complete', args), turn.tenant)
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

    async dropKv({ key, artefactId, reason }) {
      await run('drop-kv', [key, artefactId, escapeLine(reason)])
    },

    async get({ key, tenant }) {
      const reply = await run('get', [key, tenant])
      return reply.outcome === 'found' ? toRecord(readSnapshot(reply.detail), tenant) : undefined
    },

    async list({ tenant, limit, after }) {
      return toPage(await run('list', [tenant, limit, after ?? '']), tenant)
    },

    async setTtl({ key, tenant, ttlSeconds }) {
      const reply = await run('set-ttl', [key, tenant, clampCount(ttlSeconds)])
      return reply.outcome === 'found' ? toRecord(readSnapshot(reply.detail), tenant) : undefined
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
