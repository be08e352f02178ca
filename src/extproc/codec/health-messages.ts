import { WireReader } from './wire-reader.ts'

/** The service that a HealthCheckRequest asks for; empty for the server as a whole. Throws a CodecError on what is none. */
export const decodeHealthRequest = (bytes: Buffer): string => {
  const reader = new WireReader(bytes)
  let service = ''
  while (reader.next(1 * 8 + 2)) service = reader.text()
  return service
}

const responses = {
  serving: Buffer.from([1 * 8, 1]),
  'not-serving': Buffer.from([1 * 8, 2]),
  'service-unknown': Buffer.from([1 * 8, 3]),
} as const

/** A state as a HealthCheckResponse. The buffer must not be written to: it is given out again. */
export const encodeHealthResponse = (status: keyof typeof responses): Buffer => responses[status]
