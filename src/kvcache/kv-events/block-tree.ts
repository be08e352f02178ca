import type { ChainPosition, KvBlock } from './kv-block-event.ts'
import { addChild, removeChild, residentChild, type TreeBlock, type TreeRoot } from './tree-block.ts'

/** The blocks that an engine named, as chains from their roots; also blocks that it dropped, as long as others hang on them. */
export interface BlockTree {
  readonly size: number
  /** Undefined: no such block is known. A root always is. */
  find(position: ChainPosition): TreeBlock | TreeRoot | undefined
  block(hash: string): TreeBlock | undefined
  root(key: { readonly salt: string; readonly lora: string | undefined }): TreeRoot | undefined
  /** `told`: the number of the event that tells of it. */
  add(parent: TreeBlock | TreeRoot, block: KvBlock, told: number): TreeBlock
  /** Only blocks without children can be taken out. */
  remove(block: TreeBlock): void
  /** The block that follows `parent` with the tokens from `start` on, if the engine holds it. */
  residentChild(parent: TreeBlock | TreeRoot, tokens: Uint32Array, start: number): TreeBlock | undefined
  clear(): void
}

export const createBlockTree = (): BlockTree => {
  const blocks = new Map<string, TreeBlock>()
  const roots = new Map<string, TreeRoot>()
  /** Block lengths seen, longest first: engines use one, or very few. */
  let lengths: readonly number[] = []

  return {
    get size() {
      return blocks.size
    },
    find: (position) => {
      if (position.kind === 'block') return blocks.get(position.hash)
      const key = rootKey(position)
      return roots.get(key) ?? { key, end: 0, children: undefined }
    },
    block: (hash) => blocks.get(hash),
    root: (position) => roots.get(rootKey(position)),
    add: (parent, { hash, tokens }, told) => {
      const end = parent.end + tokens.length
      const block: TreeBlock = { hash, tokens, end, parent, children: undefined, resident: true, told }
      addChild(parent, block)
      if ('key' in parent) roots.set(parent.key, parent)
      blocks.set(hash, block)
      if (!lengths.includes(tokens.length)) lengths = [...lengths, tokens.length].sort((a, b) => b - a)
      return block
    },
    remove: (block) => {
      blocks.delete(block.hash)
      removeChild(block.parent, block)
      if ('key' in block.parent && block.parent.children === undefined) roots.delete(block.parent.key)
    },
    residentChild: (parent, tokens, start) => residentChild(parent, { tokens, start, lengths }),
    clear: () => {
      // Somebody may hold a block for its chain: not the whole tree with it.
      for (const block of blocks.values()) block.children = undefined
      for (const root of roots.values()) root.children = undefined
      blocks.clear()
      roots.clear()
      lengths = []
    },
  }
}

const rootKey = (root: { readonly salt: string; readonly lora: string | undefined }): string =>
  JSON.stringify([root.salt, root.lora ?? null])
