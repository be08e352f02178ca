interface Node<K, V> {
  readonly key: K
  value: V
  older: Node<K, V> | undefined
  newer: Node<K, V> | undefined
}

/**
 * A map that knows its oldest entry. Every operation is O(1). (A plain Map keeps gaps where entries were deleted, and walks over all of
 * them to find its first entry.)
 */
export class LinkedTable<K, V> {
  readonly #nodes = new Map<K, Node<K, V>>()
  #oldest: Node<K, V> | undefined
  #newest: Node<K, V> | undefined

  get size(): number {
    return this.#nodes.size
  }

  get(key: K): V | undefined {
    return this.#nodes.get(key)?.value
  }

  /** Sets a value and makes its entry the newest. */
  set(key: K, value: V): void {
    const known = this.#nodes.get(key)
    if (known !== undefined) {
      known.value = value
      this.#unlink(known)
      this.#append(known)
      return
    }
    const node: Node<K, V> = { key, value, older: undefined, newer: undefined }
    this.#nodes.set(key, node)
    this.#append(node)
  }

  /** Makes an entry the newest. */
  touch(key: K): void {
    const node = this.#nodes.get(key)
    if (node === undefined || node === this.#newest) return
    this.#unlink(node)
    this.#append(node)
  }

  delete(key: K): void {
    const node = this.#nodes.get(key)
    if (node === undefined) return
    this.#nodes.delete(key)
    this.#unlink(node)
  }

  oldest(): { readonly key: K; readonly value: V } | undefined {
    return this.#oldest
  }

  #append(node: Node<K, V>): void {
    node.older = this.#newest
    node.newer = undefined
    if (this.#newest === undefined) this.#oldest = node
    else this.#newest.newer = node
    this.#newest = node
  }

  #unlink({ older, newer }: Node<K, V>): void {
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
  }
}
