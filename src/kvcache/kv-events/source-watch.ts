import { type BlockIndex, createBlockIndex } from './block-index.ts'
import { decodeEvents } from './decode-events.ts'
import { createEventSequence } from './event-sequence.ts'
import type { KvBlockEvent } from './kv-block-event.ts'
import type { KvEventSource } from './kv-event-source.ts'
import { askReplay } from './zmq-replay.ts'
import { openSubscription } from './zmq-subscription.ts'

/** One engine process whose events are followed, and what is known of its cache. */
export interface SourceWatch {
  readonly index: Omit<BlockIndex, 'apply' | 'forget'>
  /** Whether the index misses nothing that was published. */
  readonly live: boolean
  close(): Promise<void>
}

export interface SourceWatchOptions {
  readonly source: KvEventSource
  readonly maxBlocks: number
  readonly replaySilenceMs: number
  /** How often the engine is asked whether its last batches arrived. */
  readonly tailCheckMs: number
  /** Something was told of the turn. */
  readonly onTurn: (turnId: string) => void
  /** The source became live, or is so no longer. */
  readonly onLive: (live: boolean) => void
  /** Events are lost for good, and with them everything that was known. */
  readonly onLost: () => void
  /** The connection is gone; it is made again without further ado. */
  readonly onDisconnect: () => void
}

/** Batches of events kept while a replay runs. */
const maxHeldBatches = 10_000
/** A subscription may take hold a moment after its connection stands: what was published in between shows in this first look. */
const firstTailCheckMs = 500

/** @throws when the source's address is none */
export const watchSource = (options: SourceWatchOptions): SourceWatch => {
  const { source } = options
  const index = createBlockIndex({ maxBlocks: options.maxBlocks })
  let replay = new AbortController()
  let tailTimer: NodeJS.Timeout | undefined
  let wasLive = false

  const sequence = createEventSequence<readonly KvBlockEvent[]>(
    {
      apply: (events) => {
        for (const event of events) {
          index.apply(event)
          if (event.kind === 'stored' && event.turnId !== undefined) options.onTurn(event.turnId)
        }
      },
      forget: (why) => {
        if (why === 'lost' && index.size > 0) options.onLost()
        index.forget()
      },
      ask: (from) => {
        replay.abort()
        replay = new AbortController()
        void runReplay(from, replay.signal)
      },
    },
    { canReplay: source.replayEndpoint !== undefined, maxHeld: maxHeldBatches },
  )

  const reportLive = (): void => {
    if (sequence.live === wasLive) return
    wasLive = sequence.live
    options.onLive(wasLive)
  }

  const runReplay = async (from: number, signal: AbortSignal): Promise<void> => {
    const how = await askReplay({
      endpoint: source.replayEndpoint ?? '',
      topic: source.topic,
      from,
      silenceMs: options.replaySilenceMs,
      signal,
      onBatch: (number, payload) => sequence.replayed(number, decodeEvents(payload)),
    })
    if (signal.aborted) return
    sequence.replayEnded(how)
    reportLive()
  }

  const checkTailAfter = (delayMs: number): void => {
    clearTimeout(tailTimer)
    tailTimer = setTimeout(() => {
      sequence.checkTail()
      checkTailAfter(options.tailCheckMs)
    }, delayMs)
  }

  const subscription = openSubscription(source, {
    connected: () => {
      sequence.connected()
      reportLive()
      checkTailAfter(firstTailCheckMs)
    },
    disconnected: () => {
      replay.abort()
      clearTimeout(tailTimer)
      sequence.disconnected()
      reportLive()
      options.onDisconnect()
    },
    message: (message) => {
      switch (message.kind) {
        case 'batch':
          sequence.received(message.sequence, decodeEvents(message.payload))
          break
        case 'end':
        case 'nonsense':
          sequence.doubt()
          break
        case 'foreign':
          break
      }
      reportLive()
    },
  })

  return {
    index,
    get live() {
      return sequence.live
    },
    close: async () => {
      replay.abort()
      clearTimeout(tailTimer)
      sequence.disconnected()
      await subscription.close()
    },
  }
}
