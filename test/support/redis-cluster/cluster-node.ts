import { Redis } from 'ioredis'
import { freePorts } from '../../../playground/free-port.ts'
import { type RunningRedis, startRedis } from '../../../playground/start-redis.ts'
import { type BusProxy, startBusProxy } from './bus-proxy.ts'

/** How long a node may be silent before its peers suspect it. */
export const nodeTimeoutMs = 1_000

/** A node of a cluster, and a plain client that speaks to it alone. */
export interface ClusterNode {
  /** Its place in the list of nodes; it does not change. */
  readonly index: number
  /** By which the cluster knows it. */
  readonly id: string
  readonly host: '127.0.0.1'
  readonly port: number
  /** Where the cluster says that clients reach it: `port`, unless something stands in front of it. */
  readonly clientPort: number
  /** Answers as this node does, with MOVED and ASK too. */
  readonly raw: Redis
  readonly announcedBusPort: number
  /** Of the last start. */
  server(): RunningRedis
  /** Starts the program again, with what it has on disk: its place in the cluster, and no keys. */
  start(): Promise<void>
  /** Ends connections with peers that may not speak to it any longer. */
  recheck(): void
  close(): Promise<void>
}

export interface ClusterNodeOptions {
  readonly index: number
  readonly dir: string
  /** Whether two nodes can speak on the bus. */
  readonly canSpeak: (sender: string, receiver: string) => boolean
  /** Further settings, as in redis.conf. */
  readonly settings?: Readonly<Record<string, string | number>> | undefined
  /** Opens a port for clients in front of the node's. Default: none. Nodes cannot follow each other through it. */
  readonly openFront?: ((port: number) => Promise<number>) | undefined
}

/** Starts a node that belongs to no cluster yet, behind a proxy for its bus. */
export const startClusterNode = async (options: ClusterNodeOptions): Promise<ClusterNode> => {
  const [port = 0, busPort = 0, announcedBusPort = 0] = await freePorts(3)
  const dir = `${options.dir}/node-${options.index}`
  const clientPort = (await options.openFront?.(port)) ?? port
  const start = () =>
    startRedis({
      dir,
      port,
      settings: {
        'cluster-enabled': 'yes',
        'cluster-port': busPort,
        'cluster-announce-port': clientPort,
        'cluster-announce-bus-port': announcedBusPort,
        'cluster-node-timeout': nodeTimeoutMs,
        'cluster-require-full-coverage': 'no',
        'repl-diskless-sync-delay': 0,
        ...options.settings,
      },
    })
  let server = await start()
  let proxy: BusProxy | undefined
  const raw = new Redis(port, '127.0.0.1', { protocol: 2, enableReadyCheck: false })
  // Tests end nodes on purpose.
  raw.on('error', () => {})
  const close = async (): Promise<void> => {
    raw.disconnect()
    proxy?.close()
    await server.child.kill()
  }
  try {
    const id = await raw.cluster('MYID')
    const mayPass = (sender: string): boolean => options.canSpeak(sender, id)
    const opened = await startBusProxy({ port: announcedBusPort, busPort, mayPass })
    proxy = opened
    return {
      index: options.index,
      id,
      host: '127.0.0.1',
      port,
      clientPort,
      raw,
      announcedBusPort,
      server: () => server,
      start: async () => {
        server = await start()
      },
      recheck: () => opened.recheck(),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
