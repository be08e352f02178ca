import { type ExtProcCodec, externalProcessorService } from '../codec.ts'
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
