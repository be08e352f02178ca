import { removedEvent, storedEvent, type WireEvent } from '../kv-event-messages.ts'
import { hashChain } from './chunk-keys.ts'

/** An engine's own prefix cache, in whole blocks of tokens, each salt apart. */
export interface BlockCache {
  /** Leading tokens that are there. */
  resident(salt: string, tokens: readonly number[]): number
  /** Keeps all whole blocks of the tokens. Returns an event of the turn for those from `from` on. */
  fill(run: Run & { readonly from: number }): readonly WireEvent[]
  /** An event of the turn for all whole blocks of the tokens. Keeps nothing. */
  report(run: Run): readonly WireEvent[]
  /** Drops every block of the salt. */
  evict(salt: string): readonly WireEvent[]
  clear(): void
}

interface Run {
  readonly salt: string
  readonly tokens: readonly number[]
  readonly turnId: string | undefined
}

export const createBlockCache = (blockTokens: number): BlockCache => {
  /** Salts of blocks by their hash. */
  const blocks = new Map<bigint, string>()

  const chainOf = (salt: string, tokens: readonly number[]): readonly bigint[] =>
    hashChain(salt, tokens, blockTokens).map((hash) => BigInt(`0x${hash.slice(0, 15)}`))

  const eventsOf = ({ salt, tokens, turnId }: Run, first: number): readonly WireEvent[] => {
    const chain = chainOf(salt, tokens)
    const hashes = chain.slice(first)
    if (hashes.length === 0) return []
    const reported = tokens.slice(first * blockTokens, chain.length * blockTokens)
    const session = turnId === undefined ? {} : { turnId }
    return [storedEvent({ hashes, tokens: reported, parent: chain[first - 1] ?? null, salt, ...session })]
  }

  return {
    resident: (salt, tokens) => {
      const chain = chainOf(salt, tokens)
      const missing = chain.findIndex((hash) => !blocks.has(hash))
      return (missing === -1 ? chain.length : missing) * blockTokens
    },
    fill: (run) => {
      for (const hash of chainOf(run.salt, run.tokens)) blocks.set(hash, run.salt)
      return eventsOf(run, Math.floor(run.from / blockTokens))
    },
    report: (run) => eventsOf(run, 0),
    evict: (salt) => {
      const gone = [...blocks].filter(([, owner]) => owner === salt).map(([hash]) => hash)
      for (const hash of gone) blocks.delete(hash)
      return gone.length === 0 ? [] : [removedEvent(gone)]
    },
    clear: () => blocks.clear(),
  }
}
