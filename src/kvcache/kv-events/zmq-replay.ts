import { loadZeromq } from './load-zeromq.ts'
import { encodeSequence, readMessage } from './zmq-frames.ts'

export interface ReplayRequest {
  /** The engine's ROUTER address. */
  readonly endpoint: string
  readonly topic: string
  /** Number of the first batch wanted. */
  readonly from: number
  /** How long the engine may keep silent, milliseconds. */
  readonly silenceMs: number
  readonly onBatch: (sequence: number, payload: Uint8Array) => void
  /** Ends the replay: nothing comes after. */
  readonly signal: AbortSignal
}

/**
 * Asks an engine for the batches that it still has from a number on. `failed`: it fell silent before it was through. A connection of its own
 * for each request, so that a late answer is never taken for the next one's.
 */
export const askReplay = async (request: ReplayRequest): Promise<'complete' | 'failed'> => {
  if (request.signal.aborted) return 'failed'
  const { Dealer } = loadZeromq()
  const socket = new Dealer({
    linger: 0,
    ipv6: true,
    receiveTimeout: request.silenceMs,
    sendTimeout: request.silenceMs,
    receiveHighWaterMark: 100_000,
  })
  const close = (): void => socket.close()
  request.signal.addEventListener('abort', close, { once: true })
  try {
    socket.connect(request.endpoint)
    // The empty frame is the envelope that the engine answers with, too.
    await socket.send([Buffer.alloc(0), encodeSequence(request.from)])
    while (!request.signal.aborted) {
      const [, ...frames] = await socket.receive()
      if (request.signal.aborted) break
      const message = readMessage(frames, request.topic)
      if (message.kind === 'end') return 'complete'
      if (message.kind === 'batch') request.onBatch(message.sequence, message.payload)
    }
    return 'failed'
  } catch {
    return 'failed'
  } finally {
    request.signal.removeEventListener('abort', close)
    socket.close()
  }
}
