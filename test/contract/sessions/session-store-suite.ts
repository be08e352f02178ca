import { describe } from '@jest/globals'
import { describeExpiry } from './expiry-suite.ts'
import { describeKvLimit } from './kv-limit-suite.ts'
import { describeListing } from './listing-suite.ts'
import { describeRemovalQueue } from './removal-queue-suite.ts'
import { describeRetries } from './retry-suite.ts'
import { describeRevival } from './revival-suite.ts'
import { describeSessions } from './sessions-suite.ts'
import type { StoreUnderTest } from './store-under-test.ts'
import { describeStoredKv } from './stored-kv-suite.ts'
import { describeTurnsAtOnce } from './turns-at-once-suite.ts'
import { describeTurns } from './turns-suite.ts'

/** What holds of every SessionStore with its RemovalQueue. `make` gives a fresh, empty one. */
export const describeSessionStore = (name: string, make: () => Promise<StoreUnderTest>): void => {
  describe(name, () => {
    describeSessions(make)
    describeTurns(make)
    describeTurnsAtOnce(make)
    describeExpiry(make)
    describeRevival(make)
    describeRetries(make)
    describeStoredKv(make)
    describeKvLimit(make)
    describeListing(make)
    describeRemovalQueue(make)
  })
}
