import { SlotMap } from '../../collections/slot-map.ts'
import type { SessionKey, StoredKv } from '../session-record.ts'
import { evictionColumns } from './eviction-order.ts'
import { KeyIndex } from './key-index.ts'
import { SlotRows } from './slot-rows.ts'
import { TextPool } from './text-pool.ts'

/** The numbers of a session's row. What every turn reads comes first, behind the key. */
export const sessionColumns = {
  isActive: 0,
  /** Of these four, the number of a text. */
  tenant: 1,
  model: 2,
  pod: 3,
  kvNote: 4,
  hasKv: 5,
  expiresAtMs: 6,
  createdAtMs: 7,
  ttlSeconds: 8,
  bytes: 9,
  /** Here and at the end, what the orders of eviction need. */
  order: 10,
  turns: 10 + evictionColumns,
  promptTokens: 11 + evictionColumns,
  outputTokens: 12 + evictionColumns,
  cachedTokens: 13 + evictionColumns,
  sequence: 14 + evictionColumns,
  deadlinePlace: 15 + evictionColumns,
  kvOrder: 16 + evictionColumns,
} as const

const keyLength = 43

/**
 * The memory of live sessions: numbers, and the numbers of texts that many share, lie in rows; beside them what each has of its own. Slots are given
 * anew.
 */
export class SessionRows {
  readonly rows = new SlotRows({ textLength: keyLength, numbers: sessionColumns.kvOrder + evictionColumns })
  readonly #index = new KeyIndex(this.rows)
  /** Tenants, models, pods, and why there is no KV. */
  readonly texts = new TextPool()
  readonly #sealedIds: string[] = []
  readonly #kvs: (StoredKv | undefined)[] = []
  /** Of sessions that are being created. */
  readonly #retryDigests = new SlotMap<number, string>({ hashOf: (slot) => slot })
  readonly #free: number[] = []

  get size(): number {
    return this.#index.size
  }

  /** Of rows that no session has any more. */
  get spareBytes(): number {
    return this.#free.length * this.rows.rowBytes
  }

  /** The slot of the session with this key, or whose key begins so, see `KeyIndex`; `noSlot` when there is none. */
  find(key: string): number {
    return this.#index.find(key)
  }

  /** A slot for a session whose key is not here. Of what its row holds only the key is right, and all that the orders noted. */
  take(key: SessionKey, sealedId: string): number {
    const slot = this.#free.at(-1) ?? this.#sealedIds.length
    this.rows.reserve(slot)
    this.rows.setText(slot, key)
    // Only now: a key that is none takes no slot.
    this.#free.pop()
    this.#sealedIds[slot] = sealedId
    this.#index.add(key, slot)
    return slot
  }

  /** The session is gone, and no order has it any more. */
  free(slot: number): void {
    this.#index.delete(this.keyOf(slot), slot)
    for (const column of [sessionColumns.tenant, sessionColumns.model, sessionColumns.pod, sessionColumns.kvNote])
      this.setText(slot, column, undefined)
    this.#sealedIds[slot] = ''
    this.#kvs[slot] = undefined
    this.#retryDigests.delete(slot)
    this.#free.push(slot)
  }

  keyOf(slot: number): SessionKey {
    return this.rows.text(slot) as SessionKey
  }

  /** Puts the number of a text into a column. */
  setText(slot: number, column: number, text: string | undefined): void {
    const before = this.rows.number(slot, column)
    this.rows.setNumber(slot, column, this.texts.take(text))
    this.texts.release(before)
  }

  sealedIdOf(slot: number): string {
    return this.#sealedIds[slot] ?? ''
  }

  kvOf(slot: number): StoredKv | undefined {
    return this.rows.number(slot, sessionColumns.hasKv) === 0 ? undefined : this.#kvs[slot]
  }

  setKv(slot: number, kv: StoredKv | undefined): void {
    this.rows.setNumber(slot, sessionColumns.hasKv, kv === undefined ? 0 : 1)
    this.#kvs[slot] = kv
  }

  retryDigestOf(slot: number): string | undefined {
    return this.#retryDigests.get(slot)
  }

  setRetryDigest(slot: number, digest: string | undefined): void {
    if (digest === undefined) this.#retryDigests.delete(slot)
    else this.#retryDigests.set(slot, digest)
  }
}
