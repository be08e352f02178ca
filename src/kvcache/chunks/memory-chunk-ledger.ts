import { clampCount } from '../../sessions/limits.ts'
import type { ChunkHolder, ChunkLedger, ReleasedChunks, UnsettledSalt } from './chunk-ledger.ts'
import { NamedChunks } from './named-chunks.ts'
import { SaltTurns } from './salt-turns.ts'

/** A ledger that tells how much it keeps. */
export interface MemoryChunkLedger extends ChunkLedger {
  /** How many chunks, holders, turns and unsettled salts it knows of. */
  readonly size: number
}

/** A ledger for one gateway process. `now` is its clock in milliseconds; only differences count. */
export const createMemoryChunkLedger = (options: { readonly now?: () => number } = {}): MemoryChunkLedger =>
  new InMemoryChunkLedger(options.now ?? (() => performance.now()))

/** The chunks of one salt. */
interface SaltChunks {
  /** By the artefacts that need them. */
  readonly held: NamedChunks
  /** By the artefacts and sweeps that delete them. */
  readonly claimed: NamedChunks
}

class InMemoryChunkLedger implements MemoryChunkLedger {
  readonly #now: () => number
  readonly #salts = new Map<string, SaltChunks>()
  readonly #turns = new SaltTurns()

  constructor(now: () => number) {
    this.#now = now
  }

  get size(): number {
    return [...this.#salts.values()].reduce(
      (sum, { held, claimed }) => sum + held.size + claimed.size,
      this.#turns.size,
    )
  }

  async open({ salt, turnId, leaseMs }: { salt: string; turnId: string; leaseMs: number }): Promise<void> {
    this.#turns.open(salt, turnId, clampCount(leaseMs), this.#now())
  }

  async settle({ salt, turnId, tidy }: { salt: string; turnId: string; tidy: boolean }): Promise<void> {
    const nowMs = this.#now()
    this.#turns.close(salt, turnId, nowMs)
    if (!tidy) this.#turns.unsettle(salt, nowMs)
  }

  async hold({
    salt,
    name,
    chunks,
  }: ChunkHolder & { readonly chunks: readonly string[] }): Promise<'held' | 'being-deleted'> {
    return this.#change(salt, ({ held, claimed }) => {
      if (claimed.hasName(name) || chunks.some((chunk) => claimed.hasChunk(chunk))) return 'being-deleted'
      held.add(name, chunks)
      return 'held'
    })
  }

  async release({ salt, name }: ChunkHolder): Promise<ReleasedChunks> {
    return this.#change(salt, ({ held, claimed }) => {
      claimed.add(name, held.takeAll(name))
      return { unheld: claimed.of(name), lastOfSalt: held.isEmpty }
    })
  }

  async deleted({ salt, name }: ChunkHolder): Promise<void> {
    this.#change(salt, ({ claimed }) => claimed.takeAll(name))
  }

  async claimUnheld({
    salt,
    name,
    chunks,
  }: ChunkHolder & { readonly chunks: readonly string[] }): Promise<readonly string[]> {
    return this.#change(salt, ({ held, claimed }) => {
      const unheld = [...new Set(chunks)].filter((chunk) => !held.hasChunk(chunk))
      claimed.add(name, unheld)
      return unheld
    })
  }

  async unsettled(limit: number): Promise<readonly UnsettledSalt[]> {
    return this.#turns.list(clampCount(limit), this.#now())
  }

  async swept({ salt, mark }: UnsettledSalt): Promise<void> {
    this.#turns.swept(salt, mark, this.#now())
  }

  #change<T>(salt: string, change: (chunks: SaltChunks) => T): T {
    const chunks = this.#salts.get(salt) ?? { held: new NamedChunks(), claimed: new NamedChunks() }
    const answer = change(chunks)
    if (chunks.held.isEmpty && chunks.claimed.isEmpty) this.#salts.delete(salt)
    else this.#salts.set(salt, chunks)
    return answer
  }
}
