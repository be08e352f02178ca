import type { ChainPosition, KvBlock } from './kv-block-event.ts'
import { fingerprintOf, standsAt } from './token-fingerprint.ts'

/** One block of a chain. It stays readable, with everything before it, for as long as somebody holds it. */
export interface TreeBlock {
  readonly hash: string
  readonly tokens: Uint32Array
  /** How many tokens the chain has up to and with this block. */
  readonly end: number
  readonly parent: TreeBlock | TreeRoot
  readonly children: Children
  /** Whether the engine holds it now. */
  resident: boolean
}

export interface TreeRoot {
  readonly key: string
  readonly end: 0
  readonly children: Children
}

/** By fingerprint of their tokens. */
type Children = Map<number, readonly TreeBlock[]>

/** The blocks that an engine named, as chains from their roots; also blocks that it dropped, as long as others hang on them. */
export interface BlockTree {
  readonly size: number
  /** Undefined: no such block is known. A root always is. */
  find(position: ChainPosition): TreeBlock | TreeRoot | undefined
  block(hash: string): TreeBlock | undefined
  root(key: { readonly salt: string; readonly lora: string | undefined }): TreeRoot | undefined
  add(parent: TreeBlock | TreeRoot, block: KvBlock): TreeBlock
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
      return roots.get(key) ?? { key, end: 0, children: new Map() }
    },
    block: (hash) => blocks.get(hash),
    root: (position) => roots.get(rootKey(position)),
    add: (parent, { hash, tokens }) => {
      const end = parent.end + tokens.length
      const block: TreeBlock = { hash, tokens, end, parent, children: new Map(), resident: true }
      const fingerprint = fingerprintOf(tokens, 0, tokens.length)
      parent.children.set(fingerprint, [...(parent.children.get(fingerprint) ?? []), block])
      if ('key' in parent) roots.set(parent.key, parent)
      blocks.set(hash, block)
      if (!lengths.includes(tokens.length)) lengths = [...lengths, tokens.length].sort((a, b) => b - a)
      return block
    },
    remove: (block) => {
      blocks.delete(block.hash)
      const fingerprint = fingerprintOf(block.tokens, 0, block.tokens.length)
      const others = (block.parent.children.get(fingerprint) ?? []).filter((other) => other !== block)
      if (others.length > 0) block.parent.children.set(fingerprint, others)
      else block.parent.children.delete(fingerprint)
      if ('key' in block.parent && block.parent.children.size === 0) roots.delete(block.parent.key)
    },
    residentChild: (parent, tokens, start) => {
      if (parent.children.size === 0) return undefined
      for (const length of lengths) {
        if (start + length > tokens.length) continue
        const candidates = parent.children.get(fingerprintOf(tokens, start, length)) ?? []
        const child = candidates.find((block) => block.resident && standsAt(block.tokens, tokens, start))
        if (child !== undefined) return child
      }
      return undefined
    },
    clear: () => {
      // Somebody may hold a block for its chain: not the whole tree with it.
      for (const block of blocks.values()) block.children.clear()
      for (const root of roots.values()) root.children.clear()
      blocks.clear()
      roots.clear()
      lengths = []
    },
  }
}

const rootKey = (root: { readonly salt: string; readonly lora: string | undefined }): string =>
  JSON.stringify([root.salt, root.lora ?? null])

/** All tokens of the chain that ends with the block. */
export const chainTokens = (tip: TreeBlock): Uint32Array => {
  const tokens = new Uint32Array(tip.end)
  let block: TreeBlock | TreeRoot = tip
  while ('hash' in block) {
    tokens.set(block.tokens, block.parent.end)
    block = block.parent
  }
  return tokens
}
