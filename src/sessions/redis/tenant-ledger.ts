import { loadScript } from '../../redis/load-script.ts'
import type { RedisConnection } from '../../redis/redis-connection.ts'
import { clampCount } from '../limits.ts'
import { nameOfTenant } from '../session-directory.ts'
import type { TenantKey } from '../session-record.ts'
import type { BeginTurn } from '../session-store.ts'
import { toStoreFault } from './session-script-runner.ts'

/** How long it is remembered that the KV of a tenant's last turn did not fit. */
const refusalMs = 24 * 60 * 60 * 1000

/**
 * What is counted of a tenant as a whole, under keys of its own: they may lie on another server than its sessions, which
 * are spread over all. Written only by gateways that limit tenants.
 */
export interface TenantLedger {
  /** Counts a turn until its lease ends. `known`: it is counted, for as long as before unless `hasBegun`; `full`: the tenant has as many as it may. */
  takeTurn(
    turn: Pick<BeginTurn, 'tenant' | 'turnId' | 'leaseMs'>,
    mostTurns: number,
    hasBegun?: '1' | '',
  ): Promise<'taken' | 'known' | 'full'>
  endTurn(turn: Pick<BeginTurn, 'tenant' | 'turnId'>): Promise<void>
  /** Bytes of the KV of the tenant's last turn, if they did not fit: else 0. */
  refusedBytes(tenant: TenantKey): Promise<number>
  noteRefused(tenant: TenantKey, bytes: number): Promise<void>
}

/** @throws StoreUnavailableError from every method. */
export const createTenantLedger = (connection: RedisConnection): TenantLedger => {
  const folder = new URL('scripts/tenant/', import.meta.url)
  const [takeTurn, endTurn] = [loadScript(folder, 'take-turn'), loadScript(folder, 'end-turn')]
  const turnsKey = (tenant: TenantKey): string => `${connection.keyPrefix}t:{${nameOfTenant(tenant)}}`
  const refusedKey = (tenant: TenantKey): string => `${turnsKey(tenant)}:refused`
  return {
    takeTurn: async ({ tenant, turnId, leaseMs }, mostTurns, hasBegun = '') => {
      const args = [turnId, clampCount(leaseMs), mostTurns, hasBegun]
      const reply = await connection.run(takeTurn, [turnsKey(tenant)], args).catch(toStoreFault)
      return reply === 'taken' || reply === 'known' ? reply : 'full'
    },
    endTurn: async ({ tenant, turnId }) => {
      await connection.run(endTurn, [turnsKey(tenant)], [turnId]).catch(toStoreFault)
    },
    refusedBytes: async (tenant) => Number((await connection.get(refusedKey(tenant)).catch(toStoreFault)) ?? 0),
    noteRefused: async (tenant, bytes) => {
      await connection.set(refusedKey(tenant), String(bytes), refusalMs).catch(toStoreFault)
    },
  }
}
