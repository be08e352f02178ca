import type { AccessLogCodec } from '../../accesslog/access-log-method.ts'
import type { HealthCodecs } from '../../admin/grpc-health-methods.ts'
import { type ExtProcCodec, externalProcessorService } from '../codec.ts'
import { decodeHealthRequest, encodeHealthResponse } from './health-messages.ts'
import { decodeLogExport } from './log-export-message.ts'
import { decodeProcessingRequest } from './processing-request.ts'
import { createProcessingResponseEncoder } from './processing-response.ts'

/**
 * The codec for just the fields in use, written by hand: headers stay in the message's bytes until they are asked for,
 * and replies are written in one pass. On the wire it is the same as `createExtProcCodec`.
 */
export const createLeanCodec = (): ExtProcCodec => ({
  path: `/${externalProcessorService}/Process`,
  decode: decodeProcessingRequest,
  encode: createProcessingResponseEncoder(),
})

/** The same for the access log. */
export const leanAccessLogCodec: AccessLogCodec = {
  path: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  decode: decodeLogExport,
  encode: () => emptyMessage,
}

const emptyMessage = Buffer.alloc(0)

/** The same for health checks. */
export const leanHealthCodecs: HealthCodecs = {
  check: { path: '/grpc.health.v1.Health/Check', decode: decodeHealthRequest, encode: encodeHealthResponse },
  watch: { path: '/grpc.health.v1.Health/Watch', decode: decodeHealthRequest, encode: encodeHealthResponse },
}
