import type { SessionKey } from '../session-record.ts'
import type { RetryKey } from '../session-store.ts'
import { DeadlineHeap } from './deadline-heap.ts'
import { LinkedTable } from './linked-table.ts'

interface Remembered {
  readonly session: SessionKey
  readonly bodyDigest: string
}

/** Which session a repeated create finds. Keys whose time is over go with the next one that comes; beyond `maxKeys` the oldest go. */
export class RetryKeys {
  readonly #keys = new LinkedTable<string, Remembered>()
  readonly #deadlines = new DeadlineHeap<string>()
  readonly #maxKeys: number

  constructor(options: { readonly maxKeys: number }) {
    this.#maxKeys = options.maxKeys
  }

  find(digest: string, nowMs: number): Remembered | undefined {
    this.#forgetDue(nowMs)
    return this.#keys.get(digest)
  }

  remember({ digest, bodyDigest, rememberMs }: RetryKey, session: SessionKey, nowMs: number): void {
    this.#forgetDue(nowMs)
    this.#forget(digest)
    this.#keys.set(digest, { session, bodyDigest })
    this.#deadlines.set(digest, nowMs + rememberMs)
    const oldest = this.#keys.oldest()
    if (oldest !== undefined && this.#keys.size > this.#maxKeys) this.#forget(oldest.key)
  }

  /** Forgets the key if it still names this session. */
  release(digest: string, session: SessionKey): void {
    if (this.#keys.get(digest)?.session === session) this.#forget(digest)
  }

  #forget(digest: string): void {
    this.#keys.delete(digest)
    this.#deadlines.delete(digest)
  }

  #forgetDue(nowMs: number): void {
    for (let due = this.#deadlines.takeDue(nowMs); due !== undefined; due = this.#deadlines.takeDue(nowMs)) {
      this.#keys.delete(due)
    }
  }
}
