import { beforeEach, describe } from '@jest/globals'
import { describeExpiry } from './expiry-suite.ts'
import { describeKvLimit } from './kv-limit-suite.ts'
import { describeListing } from './listing-suite.ts'
import { describeRemovalQueue } from './removal-queue-suite.ts'
import { describeRetries } from './retry-suite.ts'
import { describeRevival } from './revival-suite.ts'
import { describeSessions } from './sessions-suite.ts'
import { callsOn, type StoreUnderTest } from './store-under-test.ts'
import { describeStoredKv } from './stored-kv-suite.ts'
import { describeTurns } from './turns-suite.ts'

/**
 * The contract of SessionStore and RemovalQueue; `make` resolves to an empty store. `test/fuzz/sessions/session-stores.test.ts` compares the
 * adapters with a model over random sequences of all calls.
 */
export const describeSessionStore = (name: string, make: () => Promise<StoreUnderTest>): void => {
  describe(name, () => {
    let under: StoreUnderTest
    beforeEach(async () => {
      under = await make()
    })
    const calls = callsOn(() => under)
    describeSessions(calls)
    describeTurns(calls)
    describeExpiry(calls)
    describeRevival(calls)
    describeRetries(calls)
    describeStoredKv(calls)
    describeKvLimit(calls)
    describeListing(calls)
    describeRemovalQueue(calls)
  })
}
