import type { ExtProcEvent, Reply } from './codec.ts'
import type { StreamHandler, StreamMethod } from './grpc-stream.ts'
import { PickerStream } from './picker/picker-stream.ts'
import { failure, type ProcessOptions, ProcessStream } from './process-stream.ts'

/** The method of ExternalProcessor: one stream for each HTTP request. */
export const createProcessMethod = (options: ProcessOptions): StreamMethod<ExtProcEvent, Reply> => ({
  path: options.codec.path,
  longLived: false,
  decode: (bytes) => options.codec.decode(bytes),
  encode: (reply) => {
    try {
      return options.codec.encode(reply)
    } catch (thrown) {
      options.hooks.fault(thrown)
      const phase = reply.kind === 'decision' ? reply.phase : 'request_headers'
      return options.codec.encode({ kind: 'decision', phase, decision: failure(thrown) })
    }
  },
  open: (stream) => {
    options.hooks.streamOpened()
    let handler: StreamHandler<ExtProcEvent> | undefined
    let isDraining = false
    return {
      message: (event) => {
        handler ??= new (isPicker(event) ? PickerStream : ProcessStream)(stream, options)
        handler.message(event)
        if (isDraining) handler.drain?.()
      },
      halfClosed: () => (handler === undefined ? stream.end({ code: 'ok' }) : handler.halfClosed()),
      drain: () => {
        isDraining = true
        handler?.drain?.()
      },
      closed: () => {
        handler?.closed()
        options.hooks.streamClosed()
      },
    }
  },
})

/** Envoy's first message says how bodies cross, and so which wiring this is. */
const isPicker = (event: ExtProcEvent): boolean =>
  event.kind === 'request_headers' && event.bodyMode === 'full_duplex_streamed'
