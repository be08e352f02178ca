import type { KvEventSource } from './kv-event-source.ts'
import { loadZeromq } from './load-zeromq.ts'
import { type EventMessage, readMessage } from './zmq-frames.ts'

/** What a subscription tells, in the order in which it happens; nothing after `close`. */
export interface SubscriptionListener {
  /** A connection stands. Everything published before it is unknown. */
  connected(): void
  disconnected(): void
  message(message: EventMessage): void
}

export interface Subscription {
  close(): Promise<void>
}

/** Larger messages end the connection. */
const maxMessageBytes = 64 * 1024 * 1024
/** Messages; beyond that the publisher keeps them, and drops them at its own limit. */
const maxQueued = 100_000

/** Connects to a publisher, and again whenever the connection is lost. @throws when the address is none */
export const openSubscription = (source: KvEventSource, listener: SubscriptionListener): Subscription => {
  const { Subscriber } = loadZeromq()
  const socket = new Subscriber({
    linger: 0,
    ipv6: true,
    receiveHighWaterMark: maxQueued,
    maxMessageSize: maxMessageBytes,
    reconnectInterval: 100,
    reconnectMaxInterval: 2_000,
    // A peer that vanished without a word is noticed.
    heartbeatInterval: 5_000,
    heartbeatTimeout: 15_000,
  })
  let open = true

  const watchConnection = async (): Promise<void> => {
    for await (const event of socket.events) {
      if (!open) continue
      if (event.type === 'handshake') listener.connected()
      else if (event.type === 'disconnect') listener.disconnected()
    }
  }
  const listen = async (): Promise<void> => {
    for await (const frames of socket) {
      if (open) listener.message(readMessage(frames, source.topic))
    }
  }

  const connection = watchConnection()
  try {
    socket.subscribe(source.topic)
    socket.connect(source.endpoint)
  } catch (fault) {
    open = false
    socket.close()
    throw fault
  }
  const messages = listen()
  return {
    close: async () => {
      open = false
      socket.close()
      await Promise.allSettled([connection, messages])
    },
  }
}
