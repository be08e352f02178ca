import { createRequire } from 'node:module'
import { loadSync } from '@grpc/proto-loader'

/** One method of a .proto file: its path, and its messages as plain objects. */
export interface ProtoMethod {
  /** `/package.Service/Method`. */
  readonly path: string
  /** Fields that were not sent are missing. Throws on bytes that are no such message. */
  decodeRequest(bytes: Buffer): unknown
  /** Throws on an object that does not fit the message. */
  encodeResponse(message: object): Buffer
}

/**
 * Loads one method of a service from a file of protos/ (some 20 ms). A oneof has a member with the name of the field that is set, enums are
 * numbers, and bytes are views of the message.
 */
export const loadProtoMethod = (file: string, service: string, name: string): ProtoMethod => {
  const path = createRequire(import.meta.url).resolve(`#protos/${file}`)
  const definition = loadSync(path, { keepCase: true, longs: Number, oneofs: true })[service]
  const method = definition === undefined || 'format' in definition ? undefined : definition[name]
  if (method === undefined) throw new Error(`${file} has no method ${name} of ${service}`)
  return {
    path: method.path,
    decodeRequest: (bytes) => method.requestDeserialize(bytes),
    encodeResponse: (message) => method.responseSerialize(message),
  }
}
