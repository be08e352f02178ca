import type { Redis } from 'ioredis'
import { withoutArguments } from './redis-fault.ts'

/** Pause before another connection is opened for one that has ended. */
const reopenMs = 250

/** Messages of Redis channels, which begin anew after each reconnect. Those sent meanwhile are lost. */
export const createSubscriptions = (options: {
  /** A connection that is not connected yet, of which these are the only commands. Undefined: there is none now. */
  readonly open: () => Redis | undefined
  /** Called whenever Redis answers and refuses to subscribe. That it is away shows on the connection for commands. */
  readonly onRefused: (error: Error) => void
}) => {
  const listeners = new Map<string, (message: string) => void>()
  let subscriber: Redis | undefined
  let reopening: NodeJS.Timeout | undefined

  const join = (joining: Redis): void => {
    joining.subscribe(...listeners.keys()).catch((error: unknown) => {
      const plain = withoutArguments(error)
      if (plain.name === 'ReplyError') options.onRefused(plain)
    })
  }

  const reopen = (): void => {
    reopening = setTimeout(open, reopenMs)
  }
  const open = (): void => {
    const opened = options.open()
    if (opened === undefined) {
      reopen()
      return
    }
    subscriber = opened
    opened.on('error', () => {})
    opened.on('ready', () => join(opened))
    opened.on('message', (channel, message) => listeners.get(channel)?.(message))
    opened.on('end', reopen)
    opened.connect().catch(() => {})
  }

  return {
    /** Replaces the listener of a channel. */
    subscribe: (channel: string, onMessage: (message: string) => void): void => {
      const isFirst = listeners.size === 0
      listeners.set(channel, onMessage)
      if (isFirst) open()
      else if (subscriber?.status === 'ready') join(subscriber)
    },
    close: (): void => {
      clearTimeout(reopening)
      subscriber?.off('end', reopen)
      subscriber?.disconnect()
    },
  }
}
