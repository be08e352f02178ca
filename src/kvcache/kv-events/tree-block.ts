import { fingerprintOf, standsAt } from './token-fingerprint.ts'

/** One block of a chain. It stays readable, with everything before it, for as long as somebody holds it. */
export interface TreeBlock {
  readonly hash: string
  readonly tokens: Uint32Array
  /** How many tokens the chain has up to and with this block. */
  readonly end: number
  readonly parent: TreeBlock | TreeRoot
  children: Children
  /** Whether the engine holds it now. */
  resident: boolean
  /** The number of the last event that told of it. */
  told: number
}

export interface TreeRoot {
  readonly key: string
  readonly end: 0
  children: Children
}

/** Nearly every block has one child or none, and needs no table for it; several are found by the fingerprint of their tokens. */
export type Children = undefined | TreeBlock | Map<number, readonly TreeBlock[]>

export const addChild = (parent: TreeBlock | TreeRoot, child: TreeBlock): void => {
  const { children } = parent
  if (children === undefined) {
    parent.children = child
    return
  }
  const table = children instanceof Map ? children : tableWith(new Map(), children)
  parent.children = tableWith(table, child)
}

const tableWith = (table: Map<number, readonly TreeBlock[]>, child: TreeBlock): Map<number, readonly TreeBlock[]> => {
  const fingerprint = fingerprintOf(child.tokens, 0, child.tokens.length)
  return table.set(fingerprint, [...(table.get(fingerprint) ?? []), child])
}

/** Of several children a table stays, also for the last one. */
export const removeChild = (parent: TreeBlock | TreeRoot, child: TreeBlock): void => {
  const { children } = parent
  if (!(children instanceof Map)) {
    if (children === child) parent.children = undefined
    return
  }
  const fingerprint = fingerprintOf(child.tokens, 0, child.tokens.length)
  const others = (children.get(fingerprint) ?? []).filter((other) => other !== child)
  if (others.length > 0) children.set(fingerprint, others)
  else children.delete(fingerprint)
  if (children.size === 0) parent.children = undefined
}

/** The child with the tokens from `start` on that the engine holds. `lengths`: how long blocks may be. */
export const residentChild = (
  { children }: TreeBlock | TreeRoot,
  run: { readonly tokens: Uint32Array; readonly start: number; readonly lengths: readonly number[] },
): TreeBlock | undefined => {
  const { tokens, start, lengths } = run
  const isIt = (block: TreeBlock): boolean => block.resident && standsAt(block.tokens, tokens, start)
  if (!(children instanceof Map)) return children !== undefined && isIt(children) ? children : undefined
  for (const length of lengths) {
    if (start + length > tokens.length) continue
    const child = children.get(fingerprintOf(tokens, start, length))?.find(isIt)
    if (child !== undefined) return child
  }
  return undefined
}

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
