import { decodeRequest } from './decode-request.ts'
import { encodeReply } from './encode-reply.ts'
import type { ExtProcEvent, Reply } from './messages.ts'
import { loadWireMethod } from './wire-methods.ts'

/** Full name of the service, which is also its name in health checks. */
export const externalProcessorService = 'envoy.service.ext_proc.v3.ExternalProcessor'

/** Envoy's bytes to events, replies to Envoy's bytes. */
export interface ExtProcCodec {
  /** `/package.Service/Method`. */
  readonly path: string
  /** Throws on bytes that are no message. */
  decode(bytes: Buffer): ExtProcEvent
  encode(reply: Reply): Buffer
}

/** The codec over @grpc/proto-loader; loads protos/external-processor.proto, which takes some 20 ms. */
export const createExtProcCodec = (): ExtProcCodec => {
  const wire = loadWireMethod('external-processor.proto', externalProcessorService, 'Process')
  return {
    path: wire.path,
    decode: (bytes) => decodeRequest(wire.decodeRequest(bytes)),
    encode: (reply) => wire.encodeResponse(encodeReply(reply)),
  }
}
