import { createRequire } from 'node:module'
import { loadSync, type MethodDefinition } from '@grpc/proto-loader'

/** Bytes to plain objects and back, for one method of a .proto file. */
export interface WireMethod {
  /** `/package.Service/Method`. */
  readonly path: string
  /** A request as a plain object: fields that were not sent are missing. Throws on what is no such message. */
  decodeRequest(bytes: Buffer): unknown
  /** A response to bytes. Throws on what does not fit the message. */
  encodeResponse(message: object): Buffer
}

/**
 * Reads a file of protos/ and returns the methods of `service` in it, by name. Oneofs get a member that names the field
 * which is set, enums stay numbers, and bytes stay views of the message they came in.
 */
export const loadWireMethods = (file: string, service: string): ReadonlyMap<string, WireMethod> => {
  const path = createRequire(import.meta.url).resolve(`#protos/${file}`)
  const definition = loadSync(path, { keepCase: true, longs: Number, oneofs: true })[service]
  if (definition === undefined || 'format' in definition) throw new Error(`${file} has no service ${service}`)
  return new Map(Object.entries(definition).map(([name, method]) => [name, toWireMethod(method)]))
}

/** One method of a service; throws when the file has none of that name. */
export const loadWireMethod = (file: string, service: string, name: string): WireMethod => {
  const method = loadWireMethods(file, service).get(name)
  if (method === undefined) throw new Error(`${service} in ${file} has no method ${name}`)
  return method
}

const toWireMethod = (method: MethodDefinition<object, object>): WireMethod => ({
  path: method.path,
  decodeRequest: (bytes) => method.requestDeserialize(bytes),
  encodeResponse: (message) => method.responseSerialize(message),
})
