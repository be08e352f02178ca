import type { Due } from '../../async/deadline-queue.ts'
import type { NodeText } from '../history-store.ts'

/** What is charged for, until it ends. */
interface Entry extends Due<HandleEntry | NodeEntry> {
  readonly name: string
  readonly owner: TenantHistory
  bytes: number
}

export interface HandleEntry extends Entry {
  readonly kind: 'handle'
  path: string
  chainBytes: number
  sealed: string
  lock: { readonly turnId: string; readonly untilMs: number } | undefined
}

export interface NodeEntry extends Entry {
  readonly kind: 'node'
  text: NodeText
  /** Deadlines of the handles that lead to it, 0: none does, and of the nodes behind it. */
  ownMs: number
  convMs: number
  readonly children: Map<string, number>
}

export interface TenantHistory {
  /** Its name. */
  readonly tenant: string
  readonly handles: Map<string, HandleEntry>
  readonly nodes: Map<string, NodeEntry>
  bytes: number
}

/** When the last of what holds a node ends; 0: nothing holds it. */
export const heldUntil = ({ ownMs, convMs, children }: NodeEntry, nowMs: number): number => {
  for (const [name, endsMs] of children) if (endsMs <= nowMs) children.delete(name)
  const endsMs = Math.max(ownMs, convMs, ...children.values())
  return endsMs > nowMs ? endsMs : 0
}
