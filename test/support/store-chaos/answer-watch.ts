import { setTimeout as delay } from 'node:timers/promises'
import type { ClusterNode } from '../redis-cluster/cluster-node.ts'

const pingEveryMs = 50

/** How long nodes take to answer a plain client: a disk or a processor that stalls shows here, a fault of the store does not. */
export interface AnswerWatch {
  /** Whether a node left a ping without an answer for `lateMs` at some time between the two. */
  wasLate(node: ClusterNode, fromMs: number, toMs: number, lateMs: number): boolean
}

/** Pings every node, also those that are added, until it is told to stop. */
export const watchAnswers = (nodes: readonly ClusterNode[], until: AbortSignal): AnswerWatch => {
  const pings: { readonly node: ClusterNode; readonly sentMs: number; answeredMs: number }[] = []
  const waiting = new Set<ClusterNode>()
  const ping = async (node: ClusterNode): Promise<void> => {
    const sent = { node, sentMs: performance.now(), answeredMs: Number.POSITIVE_INFINITY }
    waiting.add(node)
    pings.push(sent)
    await node.raw.ping().catch(() => undefined)
    sent.answeredMs = performance.now()
    waiting.delete(node)
  }
  const watch = async (): Promise<void> => {
    while (!until.aborted) {
      for (const node of nodes) if (!waiting.has(node)) void ping(node)
      await delay(pingEveryMs, undefined, { signal: until }).catch(() => undefined)
    }
  }
  void watch()
  return {
    wasLate: (node, fromMs, toMs, lateMs) =>
      pings.some(
        (one) =>
          one.node === node && one.sentMs <= toMs && one.answeredMs >= fromMs && one.answeredMs - one.sentMs >= lateMs,
      ),
  }
}
