import type { ExtProcEvent, Reply } from './codec.ts'
import type { GrpcStream, StreamHandler, StreamMethod } from './grpc-stream.ts'
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
  open: (stream) => new FirstMessage(stream, options),
})

/** Envoy's first message says how bodies cross, and so which wiring this is. */
class FirstMessage implements StreamHandler<ExtProcEvent> {
  readonly #stream: GrpcStream<Reply>
  readonly #options: ProcessOptions
  #handler: StreamHandler<ExtProcEvent> | undefined
  #isDraining = false

  constructor(stream: GrpcStream<Reply>, options: ProcessOptions) {
    this.#stream = stream
    this.#options = options
    options.hooks.streamOpened()
  }

  message(event: ExtProcEvent): void {
    const handler = this.#handler ?? this.#handlerFor(event)
    this.#handler = handler
    handler.message(event)
    if (this.#isDraining) handler.drain?.()
  }

  halfClosed(): void {
    if (this.#handler === undefined) this.#stream.end({ code: 'ok' })
    else this.#handler.halfClosed()
  }

  drain(): void {
    this.#isDraining = true
    this.#handler?.drain?.()
  }

  closed(): void {
    this.#handler?.closed()
    this.#options.hooks.streamClosed()
  }

  #handlerFor(event: ExtProcEvent): StreamHandler<ExtProcEvent> {
    const isPicker = event.kind === 'request_headers' && event.bodyMode === 'full_duplex_streamed'
    return isPicker ? new PickerStream(this.#stream, this.#options) : new ProcessStream(this.#stream, this.#options)
  }
}
