import { SequenceIndex } from './sequence-index.ts'

/** The sessions of each tenant, by the number of its key, in the order in which they were begun. */
export class TenantLists {
  readonly #lists = new Map<number, SequenceIndex>()

  add(tenant: number, sequence: number, slot: number): void {
    const list = this.#lists.get(tenant) ?? new SequenceIndex()
    this.#lists.set(tenant, list)
    list.add(sequence, slot)
  }

  remove(tenant: number, sequence: number): void {
    const list = this.#lists.get(tenant)
    list?.remove(sequence)
    if (list?.size === 0) this.#lists.delete(tenant)
  }

  /** Slots, see `SequenceIndex`. */
  newestBelow(tenant: number, sequence: number): Iterable<number> {
    return this.#lists.get(tenant)?.newestBelow(sequence) ?? []
  }
}
