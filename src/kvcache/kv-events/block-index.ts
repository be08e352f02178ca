import { LRUCache } from 'lru-cache'
import { createBlockTree } from './block-tree.ts'
import type { KvBlock, KvBlockEvent, KvBlocksStored } from './kv-block-event.ts'
import type { KvPrefix } from './kv-events.ts'
import { standsAt } from './token-fingerprint.ts'
import { chainTokens, type TreeBlock, type TreeRoot } from './tree-block.ts'

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
  /** Beyond this, chains are forgotten from their ends, those first that the engine has dropped, then those not told of for the longest time. */
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
  let events = 0

  const endsLike = (block: TreeBlock): Set<TreeBlock> => (block.resident ? heldEnds : droppedEnds)

  const setResident = (block: TreeBlock, resident: boolean): void => {
    endsLike(block).delete(block)
    if (block.resident !== resident) dropped += resident ? -1 : 1
    block.resident = resident
    if (block.children === undefined) endsLike(block).add(block)
  }

  /** Returns the block before it where that is an end of the same kind now, and was not told of since. */
  const forgetEnd = (end: TreeBlock): TreeBlock | undefined => {
    endsLike(end).delete(end)
    if (!end.resident) dropped -= 1
    tree.remove(end)
    const { parent } = end
    if (!('hash' in parent) || parent.children !== undefined) return undefined
    endsLike(parent).add(parent)
    return parent.resident === end.resident && parent.told <= end.told ? parent : undefined
  }

  /** Chain by chain: one block of each would leave no turn a chain to go on with. */
  const forgetWhile = (isTooMuch: () => boolean, ends: ReadonlySet<TreeBlock>): void => {
    for (const oldest of ends) {
      let end: TreeBlock | undefined = oldest
      while (end !== undefined && isTooMuch()) end = forgetEnd(end)
      if (!isTooMuch()) return
    }
  }

  const trim = (): void => {
    forgetWhile(() => dropped > maxBlocks / droppedShare || tree.size > maxBlocks, droppedEnds)
    forgetWhile(() => tree.size > maxBlocks, heldEnds)
  }

  /** The known block, if it is the one that is told of. Undefined: the engine gave its name to something else, so neither can be told from the other. */
  const known = (parent: TreeBlock | TreeRoot, block: TreeBlock, { tokens }: KvBlock): TreeBlock | undefined => {
    if (block.parent !== parent || block.tokens.length !== tokens.length) return undefined
    if (!standsAt(block.tokens, tokens, 0)) return undefined
    setResident(block, true)
    block.told = events
    return block
  }

  /** Behind a new block only new ones come, so just the last of them is an end. */
  const append = (parent: TreeBlock | TreeRoot, blocks: readonly KvBlock[]): TreeBlock | undefined => {
    if ('hash' in parent) endsLike(parent).delete(parent)
    let tip: TreeBlock | undefined
    for (const block of blocks) {
      if (tree.block(block.hash) !== undefined) break
      tip = tree.add(tip ?? parent, block, events)
    }
    if (tip !== undefined) heldEnds.add(tip)
    return tip
  }

  /** The last of the blocks that can be told apart; undefined where there is none. */
  const follow = (start: TreeBlock | TreeRoot, blocks: readonly KvBlock[]): TreeBlock | undefined => {
    let tip: TreeBlock | undefined
    for (const [at, block] of blocks.entries()) {
      const there = tree.block(block.hash)
      if (there === undefined) return append(tip ?? start, blocks.slice(at))
      const next = known(tip ?? start, there, block)
      if (next === undefined) return tip
      tip = next
    }
    return tip
  }

  const store = ({ after, blocks, turnId }: KvBlocksStored): void => {
    const start = tree.find(after)
    if (start === undefined) return
    events += 1
    const tip = follow(start, blocks)
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
