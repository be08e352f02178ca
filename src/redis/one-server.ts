import { Redis, type RedisOptions } from 'ioredis'
import type { RedisLocation, RedisTopology } from '../options/redis-location.ts'
import { urlsOfHosts } from '../options/redis-url.ts'
import { clientOptions, retryDelayMs } from './client-options.ts'
import { isReadOnlyRefusal, withoutArguments } from './redis-fault.ts'
import type { RedisClientLimits, RedisServers, RedisServersEvents } from './redis-servers.ts'
import { ExplainingSentinelConnector } from './sentinel-connector.ts'
import { readTlsFiles } from './tls-files.ts'

/** A sentinel that does not answer for so long is left for the next one. */
const sentinelTimeoutMs = 500
const defaultSentinelPort = 26_379

/** One server, or the master that sentinels name: wherever that is, its keys are in one place. */
export const openOneServer = (
  location: RedisLocation & { readonly topology: Exclude<RedisTopology, { readonly kind: 'cluster' }> },
  limits: RedisClientLimits,
  { onLost }: Pick<RedisServersEvents, 'onLost'>,
): RedisServers => {
  const { topology } = location
  const isTls = location.url.startsWith('rediss:')
  const [url = ''] = urlsOfHosts(location.url)
  const options: Omit<RedisOptions, 'replyMapping'> = {
    ...clientOptions(limits),
    ...(isTls ? { tls: readTlsFiles(location.tls) } : {}),
    ...(topology.kind === 'sentinels' ? sentinelOptions(location, topology, limits) : {}),
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
    reconnectOnError: isReadOnlyRefusal,
  }
  const client = new Redis(url, options)
  const name = topology.kind === 'sentinels' ? `master ${topology.master}` : new URL(url).host
  const server = { name, connection: client }
  let isClosed = false
  let reconnecting: NodeJS.Timeout | undefined
  const connect = (): Promise<void> => client.connect().catch(() => {})
  // A failure is reported through the client's 'error' event; it goes on trying by itself.
  client.on('error', (error: Error) => onLost(name, withoutArguments(error)))
  // It does not where a connection cannot even be begun, as with a certificate that is just being exchanged.
  client.on('end', () => {
    if (!isClosed) reconnecting = setTimeout(connect, retryDelayMs(Number.POSITIVE_INFINITY))
  })
  return {
    commands: client,
    serverOf: () => server,
    isInUse: () => true,
    suspect: () => {},
    connect,
    openSubscriber: () => client.duplicate({ autoResubscribe: false }),
    disconnect: () => {
      isClosed = true
      clearTimeout(reconnecting)
      client.disconnect()
    },
  }
}

const sentinelOptions = (
  { url, tls }: RedisLocation,
  { master, sentinelPassword }: Extract<RedisTopology, { readonly kind: 'sentinels' }>,
  { commandTimeoutMs }: RedisClientLimits,
): RedisOptions => ({
  sentinels: urlsOfHosts(url).map((text) => {
    const { hostname, port } = new URL(text)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || defaultSentinelPort) }
  }),
  name: master,
  Connector: ExplainingSentinelConnector,
  ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
  ...(url.startsWith('rediss:') ? { enableTLSForSentinelMode: true, sentinelTLS: readTlsFiles(tls) } : {}),
  // Sentinels say when they have switched masters, also where the old one keeps its connections open.
  failoverDetector: true,
  sentinelCommandTimeout: sentinelTimeoutMs,
  sentinelRetryStrategy: () => null,
  sentinelReconnectStrategy: retryDelayMs,
  disconnectTimeout: commandTimeoutMs,
  // Those that are given are asked, at the addresses by which the gateway reaches them.
  updateSentinels: false,
})
