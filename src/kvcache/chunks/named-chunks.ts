/** Sets of chunks by name, and for every chunk how many names have it. Nothing stays of a name without chunks. */
export class NamedChunks {
  readonly #byName = new Map<string, Set<string>>()
  readonly #counts = new Map<string, number>()

  /** How many names and chunks there are. */
  get size(): number {
    return this.#byName.size + this.#counts.size
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0
  }

  hasName(name: string): boolean {
    return this.#byName.has(name)
  }

  hasChunk(chunk: string): boolean {
    return this.#counts.has(chunk)
  }

  of(name: string): readonly string[] {
    return [...(this.#byName.get(name) ?? [])]
  }

  add(name: string, chunks: readonly string[]): void {
    if (chunks.length === 0) return
    const own = this.#byName.get(name) ?? new Set()
    this.#byName.set(name, own)
    for (const chunk of chunks) {
      if (own.has(chunk)) continue
      own.add(chunk)
      this.#counts.set(chunk, (this.#counts.get(chunk) ?? 0) + 1)
    }
  }

  /** Takes all chunks from a name. Returns those that no other name has. */
  takeAll(name: string): readonly string[] {
    const chunks = this.of(name)
    this.#byName.delete(name)
    return chunks.filter((chunk) => {
      const others = (this.#counts.get(chunk) ?? 1) - 1
      if (others > 0) this.#counts.set(chunk, others)
      else this.#counts.delete(chunk)
      return others === 0
    })
  }
}
