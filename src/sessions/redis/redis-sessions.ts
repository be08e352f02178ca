import { clampCount, type TenantLimits } from '../limits.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import {
  type BeginNamedOutcome,
  type BeginNamedTurn,
  type BeginTurn,
  type SessionStore,
  StoreUnavailableError,
} from '../session-store.ts'
import { everyPartition } from './every-partition.ts'
import type { LimitedTurns } from './limited-turns.ts'
import type { Partitions } from './partitions.ts'
import { readAll, type ScriptReply } from './session-script-runner.ts'
import { assertId, escapeLine, toRecord } from './session-text.ts'
import { expiryArgs, toBeginOutcome, toCreateOutcome, toForkOutcome, toWholeSession } from './store-replies.ts'

const turnArgs = ({ key, tenant, turnId }: Pick<BeginTurn, 'key' | 'tenant' | 'turnId'>): readonly string[] => [
  assertId(key),
  assertId(tenant),
  assertId(turnId),
]

/** How often a session of a name makes room for another one before that one goes without. */
const mostRooms = 4

/** Sessions and their turns. Each method is a script on the session's partition: one atomic step. */
export const createRedisSessions = (parts: {
  readonly partitions: Partitions
  readonly turns: LimitedTurns
  readonly tenantLimits: () => TenantLimits
}) => {
  const { partitions, turns, tenantLimits } = parts
  const runOn = async (key: SessionKey, name: string, args: readonly (string | number)[]): Promise<ScriptReply> =>
    (await partitions.of(key)).run(name, args)

  /** Ends the least recently used session of the tenant that a name chose and no turn holds. False: there is none. */
  const endOldestNamed = async (tenant: TenantKey): Promise<boolean> => {
    const replies = await everyPartition(partitions, (partition) => partition.run('oldest-named', [tenant]))
    const found = replies.flatMap(({ outcome, detail }) => (outcome === 'found' ? [readAll(detail, String)] : []))
    const [[key = ''] = []] = found.sort(([, used], [, otherUsed]) => Number(used) - Number(otherUsed))
    if (key === '') return false
    await runOn(key as SessionKey, 'end-idle', [key])
    return true
  }

  const beginNamed = async (turn: BeginNamedTurn, isFindOnly: '1' | ''): Promise<ScriptReply> => {
    const { leaseMs, ttlSeconds, sealedId, model, maxNamedSessions, marks, forksBranch = false } = turn
    const fixed = [
      ...turnArgs(turn),
      clampCount(leaseMs),
      clampCount(ttlSeconds),
      escapeLine(sealedId),
      escapeLine(model),
    ]
    for (let rooms = 0; ; rooms += 1) {
      const reply = await turns.begin({ ...turn, isNamed: true }, (partition, isFull, outside) => {
        const { maxSessions = '' } = tenantLimits()
        const named = [
          maxNamedSessions,
          outside.named,
          maxSessions,
          outside.sessions,
          outside.isFullOfKv,
          forksBranch ? '1' : '',
        ]
        return partition.run('begin-named', [...fixed, marks.map(assertId).join(' '), isFull, isFindOnly, ...named])
      })
      if (reply.outcome !== 'named-full') return reply
      if (rooms === mostRooms || !(await endOldestNamed(turn.tenant))) return { ...reply, outcome: 'unknown' }
    }
  }

  return {
    async create(wanted) {
      const { key, tenant, sealedId, model, ttlSeconds, pod, leaseMs, retryOf } = wanted
      if (retryOf !== undefined && !partitions.areTogether(key, retryOf.digest))
        throw new Error('A session and the digest of its create lie in different partitions')
      const retry = retryOf
        ? [assertId(retryOf.digest), retryOf.bodyDigest, Math.max(1, clampCount(retryOf.rememberMs)), retryOf.use]
        : ['', '', '', '']
      const times = [leaseMs, ttlSeconds].map(clampCount)
      const texts = [sealedId, model, pod ?? ''].map(escapeLine)
      const reply = await turns.begin({ ...wanted, isNamed: false }, (partition, isFull, outside) => {
        const limits = [tenantLimits().maxSessions ?? '', outside.sessions, outside.isFullOfKv]
        return partition.run('create', [...turnArgs(wanted), ...times, ...texts, ...retry, isFull, ...limits])
      })
      return toCreateOutcome(reply, tenant)
    },

    async begin(turn) {
      const reply = await turns.begin({ ...turn, isNamed: false }, (partition, isFull, outside) => {
        const limits = [isFull, tenantLimits().maxSessions ?? '', outside.sessions]
        return partition.run('begin', [...turnArgs(turn), clampCount(turn.leaseMs), ...limits])
      })
      return toBeginOutcome(reply, turn.tenant)
    },

    async beginNamed(turn) {
      const { earlier } = turn
      if (earlier !== undefined) {
        const own = await beginNamed(turn, '1')
        if (own.outcome !== 'absent') return toBeginNamedOutcome(own, turn.tenant)
        const former = await beginNamed({ ...turn, ...earlier, sealedId: '' }, '1')
        if (former.outcome !== 'absent') return toBeginNamedOutcome(former, earlier.tenant)
      }
      return toBeginNamedOutcome(await beginNamed(turn, ''), turn.tenant)
    },

    async fork({ from, session }) {
      const { key, sealedId, ttlSeconds } = session
      await partitions.all()
      // The key may have been chosen when nobody knew how many partitions there are.
      if (!partitions.areTogether(key, from.key))
        throw new StoreUnavailableError('The fork would lie in another partition than its session')
      const ttl = ttlSeconds === undefined ? '' : clampCount(ttlSeconds)
      const args = [assertId(key), assertId(from.tenant), assertId(from.key), ttl, escapeLine(sealedId)]
      const reply = await turns.beginSession({ key, tenant: from.tenant, isNamed: false }, (partition, outside) =>
        partition.run('fork', [...args, tenantLimits().maxSessions ?? '', outside.sessions, outside.isFullOfKv]),
      )
      return toForkOutcome(reply, from.tenant)
    },

    async complete(turn) {
      const tokens = [turn.usage.prompt, turn.usage.output, turn.usage.cached].map(clampCount)
      const args = [...turnArgs(turn), escapeLine(turn.pod), ...tokens, ...expiryArgs(turn.expiry)]
      const [reply] = await Promise.all([runOn(turn.key, 'complete', args), turns.end(turn)])
      if (reply.outcome === 'gone') return { kind: 'gone' }
      const record = toRecord(reply.detail, turn.tenant)
      return { kind: 'completed', record, isCounted: reply.outcome === 'completed' }
    },

    async abandon(turn) {
      await Promise.all([runOn(turn.key, 'abandon', [turn.key, turn.turnId]), turns.end(turn)])
    },

    async setKvStatus({ key, status }) {
      await runOn(key, 'set-kv-status', [key, escapeLine(status)])
    },

    async get({ key, tenant }) {
      const { outcome, detail } = await runOn(key, 'get', [key, tenant])
      return outcome === 'found' ? toWholeSession(detail, tenant) : undefined
    },

    async setTtl({ key, tenant, ttlSeconds }) {
      const { outcome, detail } = await runOn(key, 'set-ttl', [key, tenant, clampCount(ttlSeconds)])
      return outcome === 'found' ? toWholeSession(detail, tenant) : undefined
    },

    async remove({ key, tenant }) {
      return (await runOn(key, 'remove', [key, tenant])).outcome === 'removed'
    },
  } satisfies Partial<SessionStore>
}

const toBeginNamedOutcome = (reply: ScriptReply, tenant: TenantKey): BeginNamedOutcome =>
  reply.outcome === 'created'
    ? { kind: 'created', record: toRecord(reply.detail, tenant), nowMs: reply.nowMs }
    : toBeginOutcome(reply, tenant)
