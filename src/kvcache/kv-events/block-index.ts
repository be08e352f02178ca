import { LRUCache } from 'lru-cache'
import { chainTokens, createBlockTree, type TreeBlock } from './block-tree.ts'
import type { KvBlock, KvBlockEvent, KvBlocksStored } from './kv-block-event.ts'
import type { KvPrefix } from './kv-events.ts'
import { standsAt } from './token-fingerprint.ts'

/** What one engine's own cache holds, as far as its events told. What it does not know counts as not held. */
export interface BlockIndex {
  apply(event: KvBlockEvent): void
  /** Leading tokens of the sequence that the engine holds, in whole blocks. */
  residentTokens(prefix: KvPrefix): number
  /** How long the longest known chain is that was stored or reused for the turn; 0 where nothing is known. */
  turnLength(turnId: string): number
  /** The tokens of that chain. They stay readable when the engine drops the blocks. */
  turnTokens(turnId: string): Uint32Array | undefined
  /** Blocks that are kept in mind, also those that the engine has dropped. */
  readonly size: number
  /** Forgets everything, turns included. */
  forget(): void
}

export interface BlockIndexOptions {
  /** Beyond this, ends of chains are forgotten, those first that the engine has dropped, then those not told of for the longest time. */
  readonly maxBlocks: number
}

const maxTurns = 10_000
/** 64 MiB, should all their blocks be gone from the engine. */
const maxTokensOfTurns = 16 * 1024 * 1024
/** One in so many blocks may be one that the engine has dropped: it may come back, and others may hang on it. */
const droppedShare = 8

export const createBlockIndex = ({ maxBlocks }: BlockIndexOptions): BlockIndex => {
  const tree = createBlockTree()
  const turns = new LRUCache<string, TreeBlock>({
    max: maxTurns,
    maxSize: maxTokensOfTurns,
    sizeCalculation: (tip) => tip.end,
  })
  // Blocks without children, oldest first. Only these are ever forgotten, so that every known block's chain is known up to its root.
  const heldEnds = new Set<TreeBlock>()
  const droppedEnds = new Set<TreeBlock>()
  let dropped = 0

  const endsLike = (block: TreeBlock): Set<TreeBlock> => (block.resident ? heldEnds : droppedEnds)

  const setResident = (block: TreeBlock, resident: boolean): void => {
    endsLike(block).delete(block)
    if (block.resident !== resident) dropped += resident ? -1 : 1
    block.resident = resident
    if (block.children.size === 0) endsLike(block).add(block)
  }

  const forgetEnd = (end: TreeBlock): void => {
    endsLike(end).delete(end)
    if (!end.resident) dropped -= 1
    tree.remove(end)
    const { parent } = end
    if ('hash' in parent && parent.children.size === 0) endsLike(parent).add(parent)
  }

  const trim = (): void => {
    for (const end of droppedEnds) {
      if (dropped <= maxBlocks / droppedShare && tree.size <= maxBlocks) break
      forgetEnd(end)
    }
    for (const end of heldEnds) {
      if (tree.size <= maxBlocks) break
      forgetEnd(end)
    }
  }

  /** The block at this place, known or new. Undefined: the engine gave its name to something else, so neither can be told from the other. */
  const put = (parent: NonNullable<ReturnType<typeof tree.find>>, block: KvBlock): TreeBlock | undefined => {
    const known = tree.block(block.hash)
    if (known === undefined) {
      if ('hash' in parent) endsLike(parent).delete(parent)
      const added = tree.add(parent, block)
      heldEnds.add(added)
      return added
    }
    if (known.parent !== parent || known.tokens.length !== block.tokens.length) return undefined
    if (!standsAt(known.tokens, block.tokens, 0)) return undefined
    setResident(known, true)
    return known
  }

  const store = ({ after, blocks, turnId }: KvBlocksStored): void => {
    let parent = tree.find(after)
    let tip: TreeBlock | undefined
    for (const block of blocks) {
      if (parent === undefined) break
      parent = put(parent, block)
      tip = parent ?? tip
    }
    if (tip !== undefined && turnId !== undefined && tip.end > (turns.get(turnId)?.end ?? 0)) turns.set(turnId, tip)
    trim()
  }

  const clear = (): void => {
    tree.clear()
    heldEnds.clear()
    droppedEnds.clear()
    dropped = 0
  }

  return {
    apply: (event) => {
      switch (event.kind) {
        case 'stored':
          return store(event)
        case 'removed':
          for (const hash of event.hashes) {
            const block = tree.block(hash)
            if (block !== undefined) setResident(block, false)
          }
          return trim()
        case 'cleared':
          return clear()
      }
    },
    residentTokens: ({ salt, tokens, lora }) => {
      let block: TreeBlock | undefined
      const root = tree.root({ salt, lora })
      if (root === undefined) return 0
      let next = tree.residentChild(root, tokens, 0)
      while (next !== undefined) {
        block = next
        next = tree.residentChild(block, tokens, block.end)
      }
      return block?.end ?? 0
    },
    turnLength: (turnId) => turns.peek(turnId)?.end ?? 0,
    turnTokens: (turnId) => {
      const tip = turns.get(turnId)
      return tip === undefined ? undefined : chainTokens(tip)
    },
    get size() {
      return tree.size
    },
    forget: () => {
      clear()
      turns.clear()
    },
  }
}
