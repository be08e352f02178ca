import type { Redis } from 'ioredis'
import { withoutArguments } from './redis-fault.ts'

/** Messages of Redis channels, which begin anew after each reconnect. Those sent meanwhile are lost. */
export const createSubscriptions = (options: {
  /** A connection like this one is opened at the first subscription: one that subscribes takes no other commands. */
  readonly client: Pick<Redis, 'duplicate'>
  /** Called whenever Redis answers and refuses to subscribe. That it is away shows on the connection for commands. */
  readonly onRefused: (error: Error) => void
}) => {
  const listeners = new Map<string, (message: string) => void>()
  let subscriber: Redis | undefined

  const join = (joining: Redis): void => {
    joining.subscribe(...listeners.keys()).catch((error: unknown) => {
      const plain = withoutArguments(error)
      if (plain.name === 'ReplyError') options.onRefused(plain)
    })
  }

  const open = (): Redis => {
    const opened = options.client.duplicate({ autoResubscribe: false })
    opened.on('error', () => {})
    opened.on('ready', () => join(opened))
    opened.on('message', (channel, message) => listeners.get(channel)?.(message))
    opened.connect().catch(() => {})
    return opened
  }

  return {
    /** Replaces the listener of a channel. */
    subscribe: (channel: string, onMessage: (message: string) => void): void => {
      listeners.set(channel, onMessage)
      subscriber ??= open()
      if (subscriber.status === 'ready') join(subscriber)
    },
    close: (): void => subscriber?.disconnect(),
  }
}
