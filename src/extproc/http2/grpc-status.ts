import type { RpcStatus } from '../transport.ts'

/** gRPC's status codes, as far as a server gives them. */
export const grpcCode = {
  ok: 0,
  cancelled: 1,
  'invalid-argument': 3,
  'deadline-exceeded': 4,
  'not-found': 5,
  'resource-exhausted': 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const

/** How a call ends, on the wire. */
export interface GrpcStatus {
  readonly code: number
  /** For `grpc-message`, before its encoding; empty where there is nothing to say. */
  readonly message: string
}

/** The seam's status as gRPC has it. */
export const toGrpcStatus = (status: RpcStatus): GrpcStatus =>
  status.code === 'ok' ? okStatus : { code: grpcCode[status.code], message: status.message }

const okStatus: GrpcStatus = { code: grpcCode.ok, message: '' }

/** gRPC's percent encoding of a message: everything but printable ASCII, and the percent sign itself. */
export const encodeGrpcMessage = (message: string): string =>
  /^[ -$&-~]*$/.test(message)
    ? message
    : Array.from(Buffer.from(message), (byte) =>
        byte < 0x20 || byte > 0x7e || byte === 0x25
          ? `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
          : String.fromCharCode(byte),
      ).join('')
