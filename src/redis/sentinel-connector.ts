import { types } from 'node:util'
import { Redis, type RedisOptions, type SentinelConnectionOptions, SentinelConnector } from 'ioredis'

/** What ioredis says of a connection that is not made, for whatever reason. */
const closed = 'Connection is closed.'

/** Asks sentinels for the master as ioredis does. When none can be connected to, the error says why. */
export class ExplainingSentinelConnector extends SentinelConnector {
  /** @param options those of the client, which ioredis passes as unknown */
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions)
  }

  override async connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    try {
      return await super.connect(...args)
    } catch (error) {
      if (!this.connecting || !types.isNativeError(error) || !error.message.endsWith(closed)) throw error
      throw (await whyNot(this.options)) ?? error
    }
  }
}

/** Connects to the first sentinel once more, since ioredis keeps to itself what its connections to them failed at. */
const whyNot = async (options: SentinelConnectionOptions): Promise<Error | undefined> => {
  const [{ host = '', port = 0 } = {}] = options.sentinels ?? []
  const probe: Omit<RedisOptions, 'replyMapping'> = {
    tls: options.sentinelTLS,
    connectTimeout: options.connectTimeout,
    commandTimeout: options.sentinelCommandTimeout,
    protocol: 2,
    retryStrategy: null,
    enableReadyCheck: false,
    disableClientInfo: true,
  }
  const sentinel = new Redis(port, host, probe)
  let reason: Error | undefined
  sentinel.on('error', ({ message }: Error) => {
    reason ??= new Error(`No sentinel can be asked for the master. ${host}:${port}: ${message.trim()}`)
  })
  // With TLS 1.3 a client learns that it is refused after it has connected. What is answered does not matter.
  await sentinel.ping().catch(() => {})
  sentinel.disconnect()
  return reason
}
