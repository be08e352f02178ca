import { EventEmitter, once } from 'node:events'
import type { ContextCacheManager } from '../../../src/context/context-cache-manager.ts'
import type { ExtProcCodec } from '../../../src/extproc/codec.ts'
import type { ExtProcEvent, Phase, Reply } from '../../../src/extproc/messages.ts'
import { createProcessMethod } from '../../../src/extproc/process-stream.ts'
import type { RpcReceiver, RpcStatus } from '../../../src/extproc/transport.ts'
import { recordingHooks } from './recording-hooks.ts'

/** One ext_proc stream without a network: what it sends, how it ends, what its hooks are told. */
export interface StreamHarness {
  readonly receiver: RpcReceiver<ExtProcEvent>
  readonly sent: readonly Reply[]
  readonly ends: readonly RpcStatus[]
  readonly faults: readonly unknown[]
  readonly messages: readonly { readonly phase: Phase; readonly milliseconds: number }[]
  readonly streams: { readonly opened: number; readonly closed: number }
  /** Resolves at the next reply. */
  nextReply(): Promise<void>
}

/** The stream of a service, on a clock that goes on by 1 ms at each look. */
export const openStream = (
  onHeaders: ContextCacheManager['onHeaders'],
  { maxBodyBytes = 1000 }: { readonly maxBodyBytes?: number } = {},
): StreamHarness => {
  const sent: Reply[] = []
  const ends: RpcStatus[] = []
  const { hooks, faults, messages, streams } = recordingHooks()
  const replies = new EventEmitter()
  let clock = 0
  const method = createProcessMethod({
    service: { onHeaders },
    codec: noCodec,
    maxBodyBytes,
    endsFirst: false,
    now: () => clock++,
    hooks,
  })
  const receiver = method.open({
    send: (reply) => {
      sent.push(reply)
      replies.emit('reply')
    },
    end: (status) => ends.push(status),
  })
  return {
    receiver,
    sent,
    ends,
    faults,
    messages,
    streams,
    nextReply: async () => {
      await once(replies, 'reply')
    },
  }
}

const noCodec: ExtProcCodec = {
  path: '/test',
  decode: () => ({ kind: 'unknown' }),
  encode: () => Buffer.alloc(0),
}

/** Request headers as an event. */
export const requestHeaders = (
  values: Readonly<Record<string, readonly string[]>> = {},
  part: Partial<Extract<ExtProcEvent, { kind: 'request-headers' }>> = {},
): ExtProcEvent => ({
  kind: 'request-headers',
  headers: (name) => values[name] ?? [],
  endOfStream: false,
  bodyMode: 'buffered',
  answerMode: 'unknown',
  ...part,
})
