import type { RedisConnection } from '../../redis/redis-connection.ts'
import { RedisUnavailableError } from '../../redis/redis-connection.ts'
import type { Evicted, KvLimit } from '../limits.ts'
import { clampCount } from '../limits.ts'
import type { SessionKey, SessionRecord, TenantKey } from '../session-record.ts'
import type {
  BeginOutcome,
  BeginTurn,
  CompleteOutcome,
  CreateOutcome,
  SessionPage,
  SessionStore,
  TurnExpiry,
} from '../session-store.ts'
import { StoreUnavailableError } from '../session-store.ts'
import type { ScriptReply, SessionScripts } from './session-script-runner.ts'
import { readSnapshot, readTombstone, readUsual, toLine, toRecord, toSessionForTurn, toWord } from './session-text.ts'
import { createTurnCalls } from './turn-calls.ts'

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

const toBeginOutcome = (reply: ScriptReply, key: SessionKey, tenant: TenantKey): BeginOutcome => {
  switch (reply.outcome) {
    case 'usual':
      return { kind: 'active', record: toSessionForTurn(readUsual(reply.detail, key), tenant), nowMs: reply.nowMs }
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

/** Reads its record when it is asked for: most turns leave nothing that asks. */
class CompletedTurn {
  readonly kind = 'completed'
  readonly #detail: unknown
  readonly #key: SessionKey
  readonly #tenant: TenantKey

  constructor(detail: unknown, key: SessionKey, tenant: TenantKey) {
    this.#detail = detail
    this.#key = key
    this.#tenant = tenant
  }

  get record(): SessionRecord {
    return toRecord(readUsual(this.#detail, this.#key), this.#tenant)
  }
}

const toCompleteOutcome = (reply: ScriptReply, key: SessionKey, tenant: TenantKey): CompleteOutcome => {
  switch (reply.outcome) {
    case 'usual':
      return new CompletedTurn(reply.detail, key, tenant)
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

/** What both of a turn's scripts begin with. */
const turnLines = ({ key, tenant, turnId }: Pick<BeginTurn, 'key' | 'tenant' | 'turnId'>): string =>
  `${toWord(key)}\n${toWord(tenant)}\n${toWord(turnId)}`

const expiryLines = (expiry: TurnExpiry): string =>
  expiry.kind === 'set'
    ? `set\n${clampCount(expiry.ttlSeconds)}\n${clampCount(expiry.expiresAtMs)}`
    : `${expiry.kind}\n\n`

/** The sessions' half of the Redis store. Every method is one script; several turns share one. */
export const createRedisSessions = (options: {
  readonly connection: RedisConnection
  readonly scripts: SessionScripts
  readonly supersededGraceMs: number
  readonly kvLimit: KvLimit | undefined
  readonly onEvicted: (what: Evicted, count: number) => void
}): SessionStore => {
  const { connection, scripts, supersededGraceMs, kvLimit, onEvicted } = options
  const { run } = scripts
  const runTurn = createTurnCalls(scripts)
  const maxKvBytes = kvLimit === undefined ? '' : clampCount(kvLimit.maxBytes)
  return {
    async create({ key, tenant, sealedId, model, ttlSeconds, pod, turnId, leaseMs, retryOf }) {
      const retry = retryOf
        ? [toWord(retryOf.digest), retryOf.bodyDigest, Math.max(1, clampCount(retryOf.rememberMs)), retryOf.use]
        : ['', '', '', '']
      const lease = [toWord(turnId), clampCount(leaseMs), clampCount(ttlSeconds)]
      const texts = [sealedId, model, pod ?? ''].map(toLine)
      return toCreateOutcome(await run('create', [toWord(key), toWord(tenant), ...lease, ...texts, ...retry]), tenant)
    },

    async begin(turn) {
      const lines = `${turnLines(turn)}\n${clampCount(turn.leaseMs)}`
      return toBeginOutcome(await runTurn('begin', lines), turn.key, turn.tenant)
    },

    async complete(turn) {
      const { usage } = turn
      const tokens = `${clampCount(usage.prompt)}\n${clampCount(usage.output)}\n${clampCount(usage.cached)}`
      const lines = `${turnLines(turn)}\n${toLine(turn.pod)}\n${tokens}\n${expiryLines(turn.expiry)}`
      return toCompleteOutcome(await runTurn('complete', lines), turn.key, turn.tenant)
    },

    async abandon({ key, turnId }) {
      await run('abandon', [key, turnId])
    },

    async commitKv({ key, kv }) {
      const sizes = [kv.tokens, kv.bytes, kv.turn].map(clampCount)
      const artefact = [toWord(kv.artefactId), toLine(kv.payload), ...sizes]
      const reply = await run('commit-kv', [key, ...artefact, supersededGraceMs, maxKvBytes])
      const evicted = Number(reply.detail)
      if (evicted > 0) onEvicted('kv-size', evicted)
      return reply.outcome === 'committed'
    },

    async noteKv({ key, reason }) {
      await run('note-kv', [key, toLine(reason)])
    },

    async dropKv({ key, artefactId, reason }) {
      await run('drop-kv', [key, artefactId, toLine(reason)])
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
      try {
        await connection.ping()
      } catch (error) {
        if (!(error instanceof RedisUnavailableError)) throw error
        throw new StoreUnavailableError('The session store cannot be reached', { cause: error })
      }
    },

    async close() {
      await connection.close()
    },
  }
}
