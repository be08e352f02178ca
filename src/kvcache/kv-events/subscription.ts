import { hash } from 'node:crypto'
import type { KvEventSource } from './event-sources.ts'
import { loadZeromq } from './load-zeromq.ts'

/** What a subscription reports, in the order in which it happens; nothing after it was closed. */
export interface SubscriptionOptions {
  /** A larger message ends the connection, which is made again. */
  readonly maxMessageBytes: number
  /** The connection stands (true) or is lost. Messages of the time without a connection are missed. */
  onConnection(isConnected: boolean): void
  /** A batch of events; never one that repeats the batch before it. The next one waits until it is read. */
  onBatch(batch: Uint8Array): Promise<void>
  /** Batches before the next one were lost. */
  onGap(): void
}

/** Messages that wait on this side. Others wait at the publisher: the connection holds them back, and none is lost. */
const maxQueuedMessages = 1
/** Messages in memory at most: beside those that wait, the one that is arriving, and the one that is being read. */
export const maxMessagesInMemory = maxQueuedMessages + 2

/** The head of a list of three and a 64-bit float: the timestamp, in which repeats differ. */
const timestampBytes = 10

/** Subscribes, again after each lost connection; returns what ends that. @throws Error when the address is invalid */
export const openSubscription = (source: KvEventSource, options: SubscriptionOptions): (() => Promise<void>) => {
  const { Subscriber } = loadZeromq()
  const socket = new Subscriber({
    linger: 0,
    ipv6: true,
    receiveHighWaterMark: maxQueuedMessages,
    maxMessageSize: options.maxMessageBytes,
    reconnectInterval: 100,
    reconnectMaxInterval: 2_000,
    // Seconds. Without it, a vanished host counts as a silent connection. With ZeroMQ's own heartbeat, every 5 s, 1 of
    // 3 test runs aborted (libzmq 4.3.5, `Assertion failed: !_io_error`; why is not known); with this none of 6.
    tcpKeepalive: 1,
    tcpKeepaliveIdle: 5,
    tcpKeepaliveInterval: 5,
    tcpKeepaliveCount: 3,
  })
  let isOpen = true
  let previous: { readonly sequence: bigint; readonly digest: string } | undefined

  /** vLLM sends a topic, a big-endian number that counts up, and the batch. */
  const receive = async ([topic, number, batch]: readonly Buffer[]): Promise<void> => {
    // Another topic may begin with the same characters.
    if (topic?.toString() !== source.topic || number?.length !== 8 || batch === undefined) return
    const sequence = number.readBigInt64BE()
    if (previous !== undefined && sequence !== previous.sequence + 1n) options.onGap()
    const digest = hash('sha256', batch.subarray(timestampBytes))
    const isRepeat = previous?.digest === digest
    previous = { sequence, digest }
    // vLLM reports a turn once for each try of its scheduler, four or five times while LMCache looks up the prompt.
    if (!isRepeat) await options.onBatch(batch)
  }

  /** A message beyond the limit ends ZeroMQ's own attempts to connect again, so the address is given anew. */
  const reconnect = (): void => {
    try {
      socket.disconnect(source.endpoint)
    } catch {
      // It is given up already.
    }
    socket.connect(source.endpoint)
  }

  const watchConnection = async (): Promise<void> => {
    for await (const { type } of socket.events) {
      if (!isOpen || (type !== 'handshake' && type !== 'disconnect')) continue
      previous = undefined
      options.onConnection(type === 'handshake')
      if (type === 'disconnect') reconnect()
    }
  }
  const receiveAll = async (): Promise<void> => {
    for await (const frames of socket) if (isOpen) await receive(frames)
  }

  const close = (): void => {
    isOpen = false
    socket.close()
  }
  const connection = watchConnection()
  try {
    socket.subscribe(source.topic)
    socket.connect(source.endpoint)
  } catch (fault) {
    close()
    throw fault
  }
  const messages = receiveAll()
  return async () => {
    close()
    await Promise.allSettled([connection, messages])
  }
}
