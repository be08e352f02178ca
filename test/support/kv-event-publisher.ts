import { setImmediate } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import { XPublisher } from 'zeromq'
import type { KvEventSource } from '../../src/kvcache/kv-events/event-sources.ts'
import type { WireEvent } from './kv-event-messages.ts'

/** An engine's side of KV events, in vLLM's frames. What is published without a subscriber is lost. */
export interface KvEventPublisher {
  readonly source: KvEventSource
  /** Subscriptions that have arrived. */
  readonly subscribers: number
  publish(...events: readonly WireEvent[]): Promise<void>
  /** Takes a number for this payload and sends it. */
  publishPayload(payload: Uint8Array): Promise<void>
  /** Takes a number and sends nothing: the batch is lost on its way. */
  lose(): void
  /** Sends these frames as they are. */
  sendRaw(frames: readonly Uint8Array[]): Promise<void>
  close(): void
}

const topic = 'kv-events'

/** `inPlaceOf`: the source of a publisher that ended, whose address to take. Default: a free port. */
export const startKvEventPublisher = async (inPlaceOf?: KvEventSource): Promise<KvEventPublisher> => {
  const publisher = new XPublisher({ linger: 0, verbosity: 'allSubsUnsubs' })
  await bind(publisher, inPlaceOf?.endpoint)
  let next = 0n
  let subscribers = 0

  const countSubscribers = async (): Promise<void> => {
    for await (const [message] of publisher) subscribers += message?.[0] === 1 ? 1 : -1
  }
  void countSubscribers()

  const takeNumber = (): Buffer => {
    const number = Buffer.alloc(8)
    number.writeBigInt64BE(next)
    next += 1n
    return number
  }
  const publishPayload = (payload: Uint8Array): Promise<void> => publisher.send([topic, takeNumber(), payload])

  return {
    source: { endpoint: publisher.lastEndpoint ?? '', topic },
    get subscribers() {
      return subscribers
    },
    publish: (...events) => publishPayload(encodeBatch(events)),
    publishPayload,
    lose: () => {
      takeNumber()
    },
    sendRaw: (frames) => publisher.send([...frames]),
    close: () => publisher.close(),
  }
}

let clockSeconds = 1_700_000_000.5

/** A batch with a timestamp of its own. */
export const encodeBatch = (events: readonly WireEvent[]): Uint8Array => {
  clockSeconds += 0.25
  return encode([clockSeconds, events, 0], { useBigInt64: true })
}

/** A closed socket's port is free only a moment later. */
const bind = async (socket: XPublisher, address = 'tcp://127.0.0.1:*'): Promise<void> => {
  for (;;) {
    try {
      return await socket.bind(address)
    } catch (fault) {
      if (!(fault instanceof Error && 'code' in fault && fault.code === 'EADDRINUSE')) throw fault
      await setImmediate()
    }
  }
}
