import { eventually } from '../eventually.ts'
import type { ClusterNode } from './cluster-node.ts'

const slots = 16_384

/** What the cluster says of itself at one node. */
export const stateAt = async (node: ClusterNode): Promise<ReadonlyMap<string, string>> => {
  const lines = (await node.raw.cluster('INFO')).split('\r\n')
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** Introduces every node to every other, and waits until all know all. */
export const meet = async (nodes: readonly ClusterNode[]): Promise<void> => {
  for (const node of nodes) {
    for (const other of nodes) {
      if (other.index > node.index) await node.raw.cluster('MEET', other.host, other.port, other.announcedBusPort)
    }
  }
  await eventually(async () => {
    for (const node of nodes) {
      const known = String(await node.raw.cluster('NODES'))
      if (known.includes('handshake') || !nodes.every(({ id }) => known.includes(id))) return false
    }
    return true
  })
}

/** Makes a cluster of nodes that belong to none: the first ones share the slots, and each of the others follows one. */
export const formCluster = async (nodes: readonly ClusterNode[], primaries: number): Promise<void> => {
  const bounds = Array.from({ length: primaries + 1 }, (_none, index) => Math.round((index * slots) / primaries))
  for (const [index, node] of nodes.slice(0, primaries).entries()) {
    await node.raw.call('CLUSTER', 'ADDSLOTSRANGE', bounds[index] ?? 0, (bounds[index + 1] ?? 0) - 1)
    await node.raw.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
  }
  await meet(nodes)
  for (const [index, node] of nodes.slice(primaries).entries())
    await node.raw.cluster('REPLICATE', nodes[index % primaries]?.id ?? '')
  await untilWell(nodes)
}

/** Waits until every one of these nodes sees all slots served, and every replica among them has all of its primary. */
export const untilWell = (nodes: readonly ClusterNode[]): Promise<true> =>
  eventually(async () => {
    for (const node of nodes) {
      const state = await stateAt(node)
      const replication = await node.raw.info('replication')
      const isBehind = replication.includes('role:slave') && !replication.includes('master_link_status:up')
      if (state.get('cluster_state') !== 'ok' || state.get('cluster_slots_ok') !== String(slots) || isBehind)
        return false
    }
    return true as const
  })
