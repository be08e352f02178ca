import { setImmediate } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import { Publisher, Router } from 'zeromq'
import type { KvEventSource } from '../../src/kvcache/kv-events/kv-event-source.ts'
import type { WireEvent } from './kv-event-messages.ts'

/** An engine's side of KV events as vLLM frames them: a PUB socket, and a ROUTER socket that repeats what its buffer still holds. */
export interface KvEventPublisher {
  readonly source: KvEventSource
  /** How many replays were asked for. */
  readonly replays: number
  publish(...events: readonly WireEvent[]): Promise<void>
  /** Goes into the buffer, but never out: the network ate it. */
  lose(...events: readonly WireEvent[]): void
  /** Sends these frames as they are. */
  sendRaw(frames: readonly Uint8Array[]): Promise<void>
  /** Takes a number for this payload, buffers and sends it. */
  publishPayload(payload: Uint8Array): Promise<void>
  /** The buffer keeps only its last `count` batches. */
  keepLast(count: number): void
  close(): void
}

export interface KvEventPublisherOptions {
  readonly topic?: string
  /** Addresses of a publisher that ended, to take its place. Default: free ports. */
  readonly inPlaceOf?: KvEventSource
  readonly withoutReplay?: boolean
}

const endOfReplay = Buffer.alloc(8, 0xff)

export const startKvEventPublisher = async (options: KvEventPublisherOptions = {}): Promise<KvEventPublisher> => {
  const topic = options.inPlaceOf?.topic ?? options.topic ?? 'kv-events'
  const publisher = new Publisher({ linger: 0 })
  const router = new Router({ linger: 0 })
  await bind(publisher, options.inPlaceOf?.endpoint)
  await bind(router, options.inPlaceOf?.replayEndpoint)
  let buffer: { readonly sequence: Buffer; readonly payload: Uint8Array }[] = []
  let next = 0
  let replays = 0

  const serveReplays = async (): Promise<void> => {
    for await (const [client, envelope, from, ...others] of router) {
      if (client === undefined || envelope?.length !== 0 || from?.length !== 8 || others.length > 0) continue
      replays += 1
      for (const { sequence, payload } of buffer) {
        if (sequence.readBigInt64BE() < from.readBigInt64BE()) continue
        await router.send([client, '', topic, sequence, payload])
      }
      await router.send([client, '', '', endOfReplay, ''])
    }
  }
  void serveReplays()

  const number = (payload: Uint8Array): Buffer => {
    const sequence = Buffer.alloc(8)
    sequence.writeBigInt64BE(BigInt(next))
    next += 1
    buffer.push({ sequence, payload })
    return sequence
  }
  const publishPayload = async (payload: Uint8Array): Promise<void> => {
    await publisher.send([topic, number(payload), payload])
  }

  return {
    source: {
      endpoint: publisher.lastEndpoint ?? '',
      replayEndpoint: options.withoutReplay === true ? undefined : (router.lastEndpoint ?? ''),
      topic,
    },
    get replays() {
      return replays
    },
    publish: (...events) => publishPayload(encodeBatch(events)),
    lose: (...events) => {
      number(encodeBatch(events))
    },
    sendRaw: (frames) => publisher.send([...frames]),
    publishPayload,
    keepLast: (count) => {
      buffer = count === 0 ? [] : buffer.slice(-count)
    },
    close: () => {
      publisher.close()
      router.close()
    },
  }
}

export const encodeBatch = (events: readonly WireEvent[]): Uint8Array =>
  encode([1_700_000_000.5, events, 0], { useBigInt64: true })

/** A closed socket's port is free only a moment later. */
const bind = async (socket: Publisher | Router, address = 'tcp://127.0.0.1:*'): Promise<void> => {
  for (;;) {
    try {
      return await socket.bind(address)
    } catch (fault) {
      if (!(fault instanceof Error && 'code' in fault && fault.code === 'EADDRINUSE')) throw fault
      await setImmediate()
    }
  }
}
