import { createRequire } from 'node:module'
import { loadSync } from '@grpc/proto-loader'

interface RequestLimit {
  readonly maxBytes: number
  readonly bytesOf?: (message: Buffer) => number
}

/**
 * Loads one method of a service from a file of protos/ (some 20 ms), with messages as plain objects. A oneof has a
 * member with the name of the field that is set, enums are numbers, and bytes are views of the message.
 *
 * `maxBytes`: of a request, as `bytesOf` counts them (default: all). A peer that is no Envoy may fill a message with tiny
 * fields, and to decode 16 MiB of them takes 26 s.
 */
export const loadProtoMethod = (
  file: string,
  service: string,
  name: string,
  { maxBytes, bytesOf = ({ length }) => length }: RequestLimit,
) => {
  const path = createRequire(import.meta.url).resolve(`#protos/${file}`)
  const definition = loadSync(path, { keepCase: true, longs: Number, oneofs: true })[service]
  const method = definition === undefined || 'format' in definition ? undefined : definition[name]
  if (method === undefined) throw new Error(`${file} has no method ${name} of ${service}`)
  return {
    /** `/package.Service/Method`. */
    path: method.path,
    /** Fields that were not sent are missing. Throws on bytes that are no such message, or too many. */
    decodeRequest: (bytes: Buffer): unknown => {
      if (bytesOf(bytes) > maxBytes) throw new Error(`a message has more than ${maxBytes} bytes beside a body`)
      return method.requestDeserialize(bytes)
    },
    /** Throws on an object that does not fit the message. */
    encodeResponse: (message: object): Buffer => method.responseSerialize(message),
  }
}
