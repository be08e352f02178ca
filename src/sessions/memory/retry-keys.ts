import { LRUCache } from 'lru-cache'
import { atMostEntries } from '../../async/at-most-entries.ts'
import type { SessionKey } from '../session-record.ts'
import type { IdempotencyKey } from '../session-store.ts'

interface Remembered {
  /** Undefined: several sessions were created alike, so a repeated create finds none of them. */
  readonly session: SessionKey | undefined
  readonly bodyDigest: string
  readonly forgetAtMs: number
}

/** The sessions that repeated creates find, by idempotency key. */
export class RetryKeys {
  readonly #keys: LRUCache<string, Remembered>

  constructor(maxKeys: number) {
    this.#keys = new LRUCache(atMostEntries(maxKeys))
  }

  find(digest: string, nowMs: number): Remembered | undefined {
    const known = this.#keys.peek(digest)
    return known !== undefined && known.forgetAtMs > nowMs ? known : undefined
  }

  remember({ digest, bodyDigest, rememberMs }: IdempotencyKey, session: SessionKey | undefined, nowMs: number): void {
    this.#keys.set(digest, { session, bodyDigest, forgetAtMs: nowMs + rememberMs })
  }

  /** Forgets a key as far as it is this session's. */
  forget(digest: string, session: SessionKey): void {
    if (this.#keys.peek(digest)?.session === session) this.#keys.delete(digest)
  }
}
