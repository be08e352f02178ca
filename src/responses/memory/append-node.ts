import { type AppendNodeOutcome, bytesPerKey, type Handle, maxForks, type NewNode } from '../history-store.ts'
import type { MemoryLedger, Moment } from './memory-ledger.ts'
import { type HandleEntry, heldUntil, type NodeEntry, type TenantHistory } from './tenant-history.ts'

type Ledger = Pick<MemoryLedger, 'charge' | 'drop' | 'hasRoom'>

export const addHandle = (
  ledger: Ledger,
  history: TenantHistory,
  handle: Handle & { readonly name: string; readonly endsMs: number },
): void => {
  const { name, path, chainBytes, sealed, endsMs } = handle
  const lock = undefined
  const entry: HandleEntry = {
    kind: 'handle',
    name,
    owner: history,
    bytes: 0,
    dueMs: endsMs,
    entry: undefined,
    path,
    chainBytes,
    sealed,
    lock,
  }
  history.handles.set(name, entry)
  ledger.charge(entry, bytesPerKey + sealed.length)
}

/** Carries a change of the last node's holders towards the root. */
export const settle = (ledger: Ledger, { history, nowMs }: Moment, path: readonly string[]): void => {
  for (let at = path.length - 1; at >= 0; at -= 1) {
    const name = path[at] ?? ''
    const endsMs = settleOne(ledger, history.nodes.get(name), nowMs)
    const children = history.nodes.get(path[at - 1] ?? '')?.children
    if (children === undefined || (children.get(name) ?? 0) === endsMs) return
    if (endsMs > 0) children.set(name, endsMs)
    else children.delete(name)
  }
}

/** Until when a node is held; one that nothing holds goes. */
const settleOne = (ledger: Ledger, node: NodeEntry | undefined, nowMs: number): number => {
  if (node === undefined) return 0
  const endsMs = heldUntil(node, nowMs)
  if (endsMs > 0) ledger.charge(node, node.bytes, endsMs)
  else ledger.drop(node)
  return endsMs
}

const sizesOf = ({ text, response }: NewNode) => {
  const bytes = bytesPerKey + text.items.length + (text.answer?.length ?? 0)
  return { bytes, allBytes: response === undefined ? bytes : bytes + bytesPerKey + response.sealed.length }
}

/** Why a node cannot be stored. */
const refusalOf = (
  ledger: Ledger,
  { path, response, conversation, maxTenantBytes }: NewNode,
  { history, nowMs, allBytes }: Moment & { readonly allBytes: number },
): Exclude<AppendNodeOutcome, 'stored'> | undefined => {
  const { handles, nodes } = history
  const parent = nodes.get(path.at(-2) ?? '')
  if (path.length > 1 && parent === undefined) return 'gone'
  if (conversation !== undefined && handles.get(conversation.name)?.lock?.turnId !== conversation.turnId) return 'gone'
  if (response !== undefined && handles.has(response.name)) return 'exists'
  if (nodes.has(path.at(-1) ?? '')) return 'taken'
  if (parent !== undefined && parent.children.size >= maxForks) heldUntil(parent, nowMs) // Ended ones are gone then.
  const mayFork = parent === undefined || parent.children.size < maxForks
  return mayFork && ledger.hasRoom(history, allBytes, maxTenantBytes) ? undefined : 'full'
}

export const appendNode = (ledger: Ledger, node: NewNode, at: Moment): AppendNodeOutcome => {
  const { history, nowMs } = at
  const { bytes, allBytes } = sizesOf(node)
  const refusal = refusalOf(ledger, node, { history, nowMs, allBytes })
  if (refusal !== undefined) return refusal
  const { path, text, response, conversation, ttlSeconds } = node
  const name = path.at(-1) ?? ''
  const endsMs = nowMs + ttlSeconds * 1000
  if (response !== undefined) addHandle(ledger, history, { ...response, endsMs })
  const moving = conversation && history.handles.get(conversation.name)
  if (moving !== undefined) {
    Object.assign(moving, { path: conversation?.path, chainBytes: conversation?.chainBytes, lock: undefined })
    ledger.charge(moving, moving.bytes, endsMs)
    const parent = history.nodes.get(path.at(-2) ?? '')
    if (parent !== undefined) parent.convMs = 0
  }
  const entry: NodeEntry = {
    kind: 'node',
    name,
    owner: history,
    bytes: 0,
    dueMs: endsMs,
    entry: undefined,
    text,
    ownMs: response === undefined ? 0 : endsMs,
    convMs: moving === undefined ? 0 : endsMs,
    children: new Map(),
  }
  history.nodes.set(name, entry)
  ledger.charge(entry, bytes)
  settle(ledger, at, path)
  return 'stored'
}
