import { EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ContextCacheManager, EndedTurn } from '../../../src/context/context-cache-manager.ts'
import { createExtProcCodec, type ExtProcEvent, type Phase, type Reply } from '../../../src/extproc/codec.ts'
import type { StreamHandler, StreamMethod, StreamStatus } from '../../../src/extproc/grpc-stream.ts'
import { createProcessMethod } from '../../../src/extproc/process-method.ts'
import type { ProcessOptions } from '../../../src/extproc/process-stream.ts'
import { recordingHooks } from './recording-hooks.ts'

/** One ext_proc stream without a network: what it sends, how it ends, what its hooks record. */
export interface StreamHarness {
  readonly method: StreamMethod<ExtProcEvent, Reply>
  readonly receiver: StreamHandler<ExtProcEvent>
  readonly sent: readonly Reply[]
  readonly ends: readonly StreamStatus[]
  /** Ends of turns that the stream reported by itself. */
  readonly turnEnds: readonly EndedTurn[]
  readonly faults: readonly unknown[]
  readonly messages: readonly { readonly phase: Phase; readonly milliseconds: number }[]
  readonly streams: { readonly opened: number; readonly closed: number }
  /** Resolves at the next reply. */
  nextReply(): Promise<void>
}

/** The stream of a service, on a clock that goes on by 1 ms at each look. */
export const openStream = (
  onHeaders: ContextCacheManager['onHeaders'],
  {
    maxBodyBytes = 1000,
    bodyMemory = { maxBytes: 100_000, heldBytes: 0 },
  }: { readonly maxBodyBytes?: number; readonly bodyMemory?: ProcessOptions['bodyMemory'] } = {},
): StreamHarness => {
  const sent: Reply[] = []
  const ends: StreamStatus[] = []
  const turnEnds: EndedTurn[] = []
  const { hooks, faults, messages, streams } = recordingHooks()
  const replies = new EventEmitter()
  let clock = 0
  const method = createProcessMethod({
    service: { onHeaders, endTurn: async (end) => void turnEnds.push(end) },
    codec,
    maxBodyBytes,
    bodyMemory,
    now: () => clock++,
    hooks,
  })
  const receiver = method.open({
    send: (reply) => {
      sent.push(reply)
      replies.emit('reply')
    },
    ready: nextTurn,
    end: (status) => ends.push(status),
  })
  return {
    method,
    receiver,
    sent,
    ends,
    turnEnds,
    faults,
    messages,
    streams,
    nextReply: async () => {
      await once(replies, 'reply')
    },
  }
}

const codec = createExtProcCodec()

/** Request headers as an event. */
export const requestHeaders = (
  values: Readonly<Record<string, readonly string[]>> = {},
  part: Partial<Extract<ExtProcEvent, { kind: 'request_headers' }>> = {},
): ExtProcEvent => ({
  kind: 'request_headers',
  headers: (name) => values[name] ?? [],
  endOfStream: false,
  bodyMode: 'buffered',
  responseBodySent: false,
  ...part,
})
