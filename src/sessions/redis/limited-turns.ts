import type { TenantLimits } from '../limits.ts'
import type { TenantKey } from '../session-record.ts'
import type { BeginTurn } from '../session-store.ts'
import { endDue } from './end-due.ts'
import type { Partition, Partitions } from './partitions.ts'
import type { ScriptReply } from './session-script-runner.ts'
import type { TenantLedger } from './tenant-ledger.ts'
import { readTenantTotals } from './totals.ts'

const begun: ReadonlySet<string> = new Set(['active', 'created', 'existing', 'expired'])

/** What a tenant has outside of the partition that begins a turn, as arguments of its script. */
export interface OutsideCounts {
  readonly sessions: number | ''
  readonly named: number | ''
  /** The tenant's stored KV is too much for another session. */
  readonly isFullOfKv: '1' | ''
}

const notCounted: OutsideCounts = { sessions: '', named: '', isFullOfKv: '' }
const nothing: OutsideCounts = { sessions: 0, named: 0, isFullOfKv: '' }

interface LimitedSession extends Pick<BeginTurn, 'key' | 'tenant'> {
  /** A client's name chose the session. */
  readonly isNamed: boolean
}

type LimitedTurn = LimitedSession & Pick<BeginTurn, 'turnId' | 'leaseMs'>

/** Begins turns within the limits of their tenants, which are of all partitions together. */
export interface LimitedTurns {
  /**
   * Begins a turn by the script of `attempt`: `isFull` tells it that the tenant may have no further turn. A script that
   * has to know what the tenant has in other partitions replies `count`.
   */
  begin(
    turn: LimitedTurn,
    attempt: (partition: Partition, isFull: '1' | '', outside: OutsideCounts) => Promise<ScriptReply>,
  ): Promise<ScriptReply>
  /** As `begin`, for a session that begins without a turn. */
  beginSession(
    session: LimitedSession,
    attempt: (partition: Partition, outside: OutsideCounts) => Promise<ScriptReply>,
  ): Promise<ScriptReply>
  /** Counts a turn no more. Never rejects: a ledger that is away forgets it when its lease ends. */
  end(turn: Pick<BeginTurn, 'tenant' | 'turnId'>): Promise<void>
}

export const createLimitedTurns = (parts: {
  readonly partitions: Partitions
  readonly ledger: TenantLedger
  readonly tenantLimits: () => TenantLimits
}): LimitedTurns => {
  const { partitions, ledger, tenantLimits } = parts

  const isFullOfKv = async (tenant: TenantKey): Promise<boolean> => {
    const { maxStoredBytes } = tenantLimits()
    if (maxStoredBytes === undefined) return false
    const refusedBytes = await ledger.refusedBytes(tenant)
    return refusedBytes > 0 && refusedBytes + (await readTenantTotals(partitions, tenant)).kvBytes > maxStoredBytes
  }

  const count = async (tenant: TenantKey, partition: Partition): Promise<OutsideCounts> => {
    const [{ sessions, named }, isFull] = await Promise.all([
      readTenantTotals(partitions, tenant, partition),
      isFullOfKv(tenant),
    ])
    return { sessions, named, isFullOfKv: isFull ? '1' : '' }
  }

  /** Without limits, only a name's session needs to know how many others there are. */
  const countsOfStart = async (isNamed: boolean): Promise<OutsideCounts> => {
    const { maxSessions, maxStoredBytes } = tenantLimits()
    const isAlone = (await partitions.all()).length === 1
    const isFree = isAlone || (maxSessions === undefined && !isNamed)
    return isFree && maxStoredBytes === undefined ? nothing : notCounted
  }

  /** Runs the script of `attempt` until it needs no more counts, and no room that due sessions would make. */
  const settle = async (
    { tenant, isNamed }: LimitedSession,
    partition: Partition,
    attempt: (outside: OutsideCounts) => Promise<ScriptReply>,
  ): Promise<ScriptReply> => {
    let reply = await attempt(await countsOfStart(isNamed))
    if (reply.outcome === 'count') reply = await attempt(await count(tenant, partition))
    if (reply.outcome !== 'limited' || reply.detail !== 'sessions' || (await endDue(partitions)).ended === 0)
      return reply
    return attempt(await count(tenant, partition))
  }

  const end: LimitedTurns['end'] = async (turn) => {
    if (tenantLimits().maxTurns !== undefined) await ledger.endTurn(turn).catch(() => {})
  }

  return {
    begin: async (turn, attempt) => {
      const { maxTurns } = tenantLimits()
      const partition = await partitions.of(turn.key)
      const taken = maxTurns === undefined ? 'unlimited' : await ledger.takeTurn(turn, maxTurns)
      let isBegun = false
      try {
        const reply = await settle(turn, partition, (outside) =>
          attempt(partition, taken === 'full' ? '1' : '', outside),
        )
        isBegun = begun.has(reply.outcome)
        if (isBegun && taken === 'known') await ledger.takeTurn(turn, maxTurns ?? 0, '1')
        return reply
      } finally {
        if (taken === 'taken' && !isBegun) await end(turn)
      }
    },
    beginSession: async (session, attempt) => {
      const partition = await partitions.of(session.key)
      return settle(session, partition, (outside) => attempt(partition, outside))
    },
    end,
  }
}
