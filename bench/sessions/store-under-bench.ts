import type { RemovalQueue } from '../../src/sessions/removal-queue.ts'
import type { SessionStore } from '../../src/sessions/session-store.ts'

export interface StoreUnderBench {
  readonly store: SessionStore & RemovalQueue
  /** Memory that it takes now. */
  readonly usedBytes: () => Promise<number>
  /** What a script took in the server since the last time this was asked, on average; undefined where there is none. */
  readonly serverMicroseconds: () => Promise<number | undefined>
  readonly close: () => Promise<void>
}
