import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster } from 'ioredis'
import { createRedisConnection, type RedisConnectionOptions } from '../../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import { eventually } from '../eventually.ts'
import { type ClusterNode, startClusterNode } from './cluster-node.ts'
import { formCluster, meet, stateAt, untilWell } from './form-cluster.ts'
import { beginSlotMigration, type SlotMigration } from './slot-migration.ts'

/** A Redis Cluster of real servers for one test file. */
export interface TestRedisCluster {
  /** The primaries of the start, then the replica of each, then nodes that were added. */
  readonly nodes: readonly ClusterNode[]
  /** `redis://` with the host and port of every node of the start, for `url` of a connection. */
  readonly url: string
  /** A plain client of the whole cluster, to read and damage keys. */
  readonly raw: Cluster
  /** A connection with a key prefix of its own, closed with the cluster. */
  connect(options?: Partial<RedisConnectionOptions>): Promise<RedisConnection>
  /** All keys that match, of all primaries. */
  keys(pattern: string): Promise<readonly string[]>
  slotOf(key: string): Promise<number>
  /** The primary that serves a key now, as a node that runs sees it. */
  primaryOf(key: string): Promise<ClusterNode>
  /** SIGKILL. */
  kill(index: number): Promise<void>
  /** Starts a killed node again. It has no keys until it follows whoever took its slots over. */
  restart(index: number): Promise<void>
  /** SIGSTOP: connections stay open, nothing is answered. */
  pause(index: number): void
  resume(index: number): void
  /** Nothing passes between the node and its peers on the bus. Clients reach it, and its replicas follow it. */
  cut(index: number): void
  heal(index: number): void
  /** Waits until others serve the slots of this node, which is killed, paused or cut off. */
  untilReplaced(index: number): Promise<void>
  /** Waits until nodes that run see all slots served and replicas follow. */
  untilWell(): Promise<void>
  migrate(slot: number, to: number): Promise<SlotMigration>
  /** Starts a primary without slots, and waits until it is a part of the cluster. */
  addNode(): Promise<ClusterNode>
  close(): Promise<void>
}

export interface TestRedisClusterOptions {
  /** Default 3. */
  readonly primaries?: number
  /** Of each primary. Default 1. */
  readonly replicas?: number
  /** Further settings of every node, as in redis.conf. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** Opens a port for clients in front of a node's; `url` has those. Default: none. Only without replicas. */
  readonly openFront?: (port: number) => Promise<number>
}

/** Where nobody can take over, a busy machine is no reason to say that the cluster is down. */
const neverMs = 60_000

const isOk = async (node: ClusterNode): Promise<boolean> => (await stateAt(node)).get('cluster_state') === 'ok'

/** Starts the nodes one after the other and joins them. They end with `close`, and with this process. */
export const startTestRedisCluster = async (options: TestRedisClusterOptions = {}): Promise<TestRedisCluster> => {
  const { primaries = 3, replicas = 1, openFront } = options
  const settings = replicas === 0 ? { 'cluster-node-timeout': neverMs, ...options.settings } : options.settings
  const dir = await mkdtemp(join(tmpdir(), 'test-redis-cluster-'))
  const nodes: ClusterNode[] = []
  const connections: RedisConnection[] = []
  const isCut = new Set<string>()
  let raw: Cluster | undefined

  const addNode = async (): Promise<ClusterNode> => {
    const canSpeak = (sender: string, receiver: string): boolean => !isCut.has(sender) && !isCut.has(receiver)
    const node = await startClusterNode({ index: nodes.length, dir, canSpeak, settings, openFront })
    nodes.push(node)
    return node
  }
  const nodeAt = (index: number): ClusterNode => {
    const node = nodes[index]
    if (node === undefined) throw new Error(`there is no node ${index}`)
    return node
  }
  const paused = new Set<number>()
  const healthy = (): readonly ClusterNode[] =>
    nodes.filter((node) => node.server().child.isRunning() && !paused.has(node.index) && !isCut.has(node.id))
  const recheck = (): void => {
    for (const node of nodes) node.recheck()
  }
  /** Slots by their first and last, with the id of the primary, as a healthy node sees them. */
  const owners = async (): Promise<readonly { from: number; to: number; id: string }[]> => {
    const [asked] = healthy()
    if (asked === undefined) throw new Error('no node runs')
    const ranges = (await asked.raw.call('CLUSTER', 'SLOTS')) as [number, number, [string, number, string]][]
    return ranges.map(([from, to, [, , id]]) => ({ from, to, id }))
  }
  const nodeById = (id: string | undefined): ClusterNode => nodeAt(nodes.findIndex((node) => node.id === id))
  const slotOf = (key: string): Promise<number> => nodeById(healthy()[0]?.id).raw.cluster('KEYSLOT', key)
  const ownerOf = async (slot: number): Promise<ClusterNode> =>
    nodeById((await owners()).find(({ from, to }) => from <= slot && slot <= to)?.id)
  const primariesNow = async (): Promise<readonly ClusterNode[]> =>
    [...new Set((await owners()).map(({ id }) => id))].map(nodeById)

  const close = async (): Promise<void> => {
    raw?.disconnect()
    await Promise.all(connections.map((connection) => connection.close()))
    await Promise.all(nodes.map((node) => node.close()))
    await rm(dir, { recursive: true, force: true })
  }

  try {
    for (let made = 0; made < primaries * (1 + replicas); made += 1) await addNode()
    await formCluster(nodes, primaries)
    raw = new Cluster(
      nodes.map(({ host, port }) => ({ host, port })),
      { redisOptions: { protocol: 2 } },
    )
    raw.on('error', () => {})
  } catch (error) {
    await close()
    throw error
  }

  const url = `redis://${nodes.map(({ host, clientPort }) => `${host}:${clientPort}`).join(',')}`
  return {
    nodes,
    url,
    raw,
    async connect(changes = {}) {
      const connection = await createRedisConnection({
        url,
        topology: { kind: 'cluster' },
        keyPrefix: `test:${randomUUID()}:`,
        onFault: () => {},
        // Not the default: on a busy machine an answer takes longer than 250 ms.
        commandTimeoutMs: 10_000,
        ...changes,
      })
      connections.push(connection)
      return connection
    },
    keys: async (pattern) =>
      (await Promise.all((await primariesNow()).map((node) => node.raw.keys(pattern)))).flat().sort(),
    slotOf,
    primaryOf: async (key) => ownerOf(await slotOf(key)),
    kill: async (index) => void (await nodeAt(index).server().child.kill()),
    restart: (index) => nodeAt(index).start(),
    pause: (index) => {
      paused.add(index)
      nodeAt(index).server().child.pause()
    },
    resume: (index) => {
      paused.delete(index)
      nodeAt(index).server().child.resume()
    },
    cut: (index) => {
      isCut.add(nodeAt(index).id)
      recheck()
    },
    heal: (index) => void isCut.delete(nodeAt(index).id),
    untilReplaced: async (index) => {
      const { id } = nodeAt(index)
      await eventually(async () => {
        const primaries = await primariesNow()
        if (primaries.some((primary) => primary.id === id)) return false
        return (await Promise.all(primaries.map(isOk))).every(Boolean)
      })
    },
    untilWell: async () => void (await untilWell(healthy())),
    migrate: async (slot, to) =>
      beginSlotMigration({ slot, from: await ownerOf(slot), to: nodeAt(to), primaries: await primariesNow() }),
    addNode: async () => {
      const node = await addNode()
      await meet(healthy())
      await untilWell(healthy())
      return node
    },
    close,
  }
}
