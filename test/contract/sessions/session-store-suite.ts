import { beforeEach, describe } from '@jest/globals'
import type { TenantLimits } from '../../../src/sessions/limits.ts'
import { describeExpiry } from './expiry-suite.ts'
import { describeForks } from './forks-suite.ts'
import { describeKvLimit } from './kv-limit-suite.ts'
import { describeListing } from './listing-suite.ts'
import { describeNamedSessions } from './names-suite.ts'
import { describeRemovalQueue } from './removal-queue-suite.ts'
import { describeSessions } from './sessions-suite.ts'
import { callsOn, type StoreUnderTest } from './store-under-test.ts'
import { describeTenantLimits } from './tenant-limits-suite.ts'
import { describeTurns } from './turns-suite.ts'

/**
 * The contract of SessionStore and RemovalQueue; `make` resolves to an empty store. What each call does to a session,
 * and returns, is compared with a model in `test/fuzz/sessions/session-stores.test.ts`, over random sequences of all
 * calls. Here: order, concurrency, limits, and texts and numbers of any form.
 */
export const describeSessionStore = (
  name: string,
  make: (tenantLimits: () => TenantLimits) => Promise<StoreUnderTest>,
): void => {
  describe(name, () => {
    let under: StoreUnderTest
    let limits: TenantLimits = {}
    beforeEach(async () => {
      limits = {}
      under = await make(() => limits)
    })
    const calls = callsOn(() => under)
    describeSessions(calls)
    describeTurns(calls)
    describeExpiry(calls)
    describeForks(calls)
    describeKvLimit(calls)
    describeListing(calls)
    describeNamedSessions(calls)
    describeRemovalQueue(calls)
    describeTenantLimits(calls, (next) => {
      limits = next
    })
  })
}
