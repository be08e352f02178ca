import { Cluster, Command, type Redis } from 'ioredis'
import type { RedisLocation } from '../options/redis-location.ts'
import { urlsOfHosts } from '../options/redis-url.ts'
import { clientOptions, retryDelayMs } from './client-options.ts'
import { withoutArguments } from './redis-fault.ts'
import type { RedisClientLimits, RedisServer, RedisServers, RedisServersEvents } from './redis-servers.ts'
import { readTlsFiles } from './tls-files.ts'

/** A node that does not tell the slots for so long is left for another. */
const slotsTimeoutMs = 500
/** Slots are asked for no more often than this, however many commands fail. */
const suspectEveryMs = 100
/** How often a command is sent again that a node redirects or puts off. */
const maxRedirections = 8

/** The primaries of a Redis Cluster. */
export const openClusterServers = (
  location: RedisLocation,
  limits: RedisClientLimits,
  { onLost, onChange }: RedisServersEvents,
): RedisServers => {
  const urls = urlsOfHosts(location.url).map((text) => new URL(text))
  const [{ username, password, protocol } = new URL(location.url)] = urls
  const cluster = new Cluster(
    urls.map(({ hostname, port }) => ({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) })),
    {
      redisOptions: {
        ...clientOptions(limits),
        ...(username === '' && password === ''
          ? {}
          : { username: decodeURIComponent(username), password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' ? { tls: readTlsFiles(location.tls) } : {}),
      },
      lazyConnect: true,
      enableOfflineQueue: false,
      // The slots are known or not; that the cluster as a whole is well is no condition for those that are served.
      enableReadyCheck: false,
      scaleReads: 'master',
      clusterRetryStrategy: retryDelayMs,
      clusterNodeRetryStrategy: retryDelayMs,
      // A command whose connection was lost may have been run: it is not sent again.
      retryDelayOnFailover: 0,
      // A cluster that is down stays so for longer than a command may take.
      retryDelayOnClusterDown: 0,
      maxRedirections,
      // All together less than the time limit, so that a slot on its way does not pass for a silent node.
      retryDelayOnTryAgain: limits.commandTimeoutMs / maxRedirections / 2,
      slotsRefreshTimeout: slotsTimeoutMs,
      // A certificate is for a name, which the client would replace by an address.
      dnsLookup: (name, callback) => callback(null, name),
    },
  )
  const connections = new Map<string, Redis>()
  const primaries = (): readonly Redis[] => cluster.nodes('master')
  const isPrimary = (name: string): boolean => primaries().some((node) => nameOf(node) === name)
  let suspectedMs = Number.NEGATIVE_INFINITY
  const suspect = (): void => {
    const nowMs = performance.now()
    if (cluster.status !== 'ready' || nowMs - suspectedMs < suspectEveryMs) return
    suspectedMs = nowMs
    cluster.refreshSlotsCache()
  }
  const connectPrimaries = async (): Promise<void> => {
    const waiting = primaries().filter(({ status }) => status === 'wait')
    await Promise.all(waiting.map((node) => node.connect().catch(() => {})))
  }

  cluster.on('+node', (node: Redis) => connections.set(nameOf(node), node))
  cluster.on('-node', (node: Redis) => {
    const name = nameOf(node)
    if (connections.get(name) === node) connections.delete(name)
  })
  cluster.on('refresh', () => {
    void connectPrimaries()
    onChange()
  })
  cluster.on('error', (error: Error) => onLost(unknownServer.name, withoutArguments(error)))
  cluster.on('node error', (error: Error, name: string) => {
    if (!isPrimary(name)) return
    onLost(name, withoutArguments(error))
    suspect()
  })

  return {
    commands: cluster,
    serverOf: (key): RedisServer => {
      const slot = new Command('get', [key]).getSlot()
      const name = typeof slot === 'number' ? cluster.slots[slot]?.[0] : undefined
      return name === undefined ? unknownServer : { name, connection: connections.get(name) }
    },
    isInUse: isPrimary,
    suspect,
    connect: async () => {
      await cluster.connect().catch(() => {})
      await Promise.all(primaries().map(untilTried))
    },
    openSubscriber: () => {
      const nodes = cluster.nodes()
      const node = nodes.find(({ status }) => status === 'ready') ?? nodes[0]
      return node?.duplicate({
        autoResubscribe: false,
        enableOfflineQueue: false,
        readOnly: false,
        retryStrategy: null,
      })
    },
    disconnect: () => cluster.disconnect(),
  }
}

const unknownServer: RedisServer = { name: 'the cluster', connection: undefined }

const nameOf = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/** Waits until a connection that is being made is there, or failed for the first time. */
const untilTried = (node: Redis): Promise<void> =>
  new Promise((resolve) => {
    if (node.status !== 'connecting' && node.status !== 'connect') return resolve()
    for (const event of ['ready', 'close', 'end']) node.once(event, () => resolve())
  })
