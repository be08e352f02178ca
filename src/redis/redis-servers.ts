import type { Redis } from 'ioredis'

/** What a client of ioredis does for this module; it reconnects by itself, and queues nothing without a connection. */
export type RedisCommands = Pick<Redis, 'evalsha' | 'eval' | 'get' | 'set' | 'config'>

/** A server that commands are sent to. */
export interface RedisServer {
  /** Its address, for logs. */
  readonly name: string
  /** Undefined: none yet. */
  readonly connection: Redis | undefined
}

/** The servers of one location: a single one, or the primaries of a cluster. */
export interface RedisServers {
  /** Sends each command to the server of its key. */
  readonly commands: RedisCommands
  /** The server that a command with this key goes to. */
  serverOf(key: string): RedisServer
  /** Whether the server, by name, still has keys. One that lost them is nobody's concern. */
  isInUse(name: string): boolean
  /** A command found that a server does not do its work: looks for the one that took over. */
  suspect(): void
  /** Resolves once the first attempt has succeeded or failed; the next ones follow by themselves. Never rejects. */
  connect(): Promise<void>
  /** A connection of its own, for messages, not connected yet. Undefined while no server is known. */
  openSubscriber(): Redis | undefined
  disconnect(): void
}

/** What the servers tell. */
export interface RedisServersEvents {
  /** A connection failed, or could not be made. */
  readonly onLost: (name: string, error: Error) => void
  /** The servers in use may be others now. */
  readonly onChange: () => void
}

export interface RedisClientLimits {
  readonly commandTimeoutMs: number
  readonly connectTimeoutMs: number
}
