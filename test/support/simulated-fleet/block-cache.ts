import { createHash } from 'node:crypto'
import { removedEvent, storedEvent, type WireEvent } from '../kv-event-messages.ts'

/** An engine's own prefix cache, in whole blocks of tokens, each salt apart. */
export interface BlockCache {
  /** Leading tokens that are there. */
  resident(salt: string, tokens: readonly number[]): number
  /** Keeps all whole blocks of the tokens. Tells of those from `from` on as events of the turn. */
  fill(run: {
    readonly salt: string
    readonly tokens: readonly number[]
    readonly from: number
    readonly turnId: string | undefined
  }): readonly WireEvent[]
  /** Drops every block of the salt. */
  evict(salt: string): readonly WireEvent[]
  clear(): void
}

interface Block {
  readonly hash: bigint
  readonly salt: string
}

export const createBlockCache = (blockTokens: number): BlockCache => {
  const blocks = new Map<bigint, Block>()

  const chainOf = (salt: string, tokens: readonly number[]): readonly bigint[] => {
    const hashes: bigint[] = []
    let parent = salt
    for (let end = blockTokens; end <= tokens.length; end += blockTokens) {
      parent = createHash('sha256')
        .update(`${parent}:${tokens.slice(end - blockTokens, end).join()}`)
        .digest('hex')
      hashes.push(BigInt(`0x${parent.slice(0, 15)}`))
    }
    return hashes
  }

  return {
    resident: (salt, tokens) => {
      const chain = chainOf(salt, tokens)
      const missing = chain.findIndex((hash) => !blocks.has(hash))
      return (missing === -1 ? chain.length : missing) * blockTokens
    },
    fill: ({ salt, tokens, from, turnId }) => {
      const chain = chainOf(salt, tokens)
      for (const hash of chain) blocks.set(hash, { hash, salt })
      const first = Math.floor(from / blockTokens)
      const hashes = chain.slice(first)
      if (hashes.length === 0) return []
      const told = tokens.slice(first * blockTokens, chain.length * blockTokens)
      const session = turnId === undefined ? {} : { turnId }
      return [storedEvent({ hashes, tokens: told, parent: chain[first - 1] ?? null, salt, ...session })]
    },
    evict: (salt) => {
      const gone = [...blocks.values()].filter((block) => block.salt === salt).map(({ hash }) => hash)
      for (const hash of gone) blocks.delete(hash)
      return gone.length === 0 ? [] : [removedEvent(gone)]
    },
    clear: () => blocks.clear(),
  }
}
