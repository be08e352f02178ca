import type { RpcMethod } from '../transport.ts'
import { type GrpcStatus, grpcCode } from './grpc-status.ts'
import { parseGrpcTimeout } from './grpc-timeout.ts'

/** The headers of a request that gRPC looks at. */
export interface RequestHead {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly contentType: string | undefined
  readonly encoding: string | undefined
  readonly timeout: string | undefined
}

/** What becomes of a request, as far as its headers tell. */
export type Admission =
  | { readonly kind: 'call'; readonly method: RpcMethod<unknown, unknown>; readonly timeoutMs: number | undefined }
  /** An answer in gRPC's terms. */
  | { readonly kind: 'status'; readonly status: GrpcStatus }
  /** No gRPC at all: an answer in HTTP's terms. */
  | { readonly kind: 'http'; readonly status: number }

const grpcType = 'application/grpc'

/** Finds the method that a request is for. */
export const admit = (head: RequestHead, methods: ReadonlyMap<string, RpcMethod<unknown, unknown>>): Admission => {
  if (head.method !== 'POST') return { kind: 'http', status: 405 }
  if (!isGrpc(head.contentType)) return { kind: 'http', status: 415 }
  if (head.encoding !== undefined && head.encoding !== 'identity') {
    return refuse(grpcCode.unimplemented, 'messages must not be compressed')
  }
  const timeoutMs = parseGrpcTimeout(head.timeout)
  if (timeoutMs === 'malformed') return refuse(grpcCode.internal, 'grpc-timeout cannot be read')
  const method = methods.get(head.path ?? '')
  return method === undefined
    ? refuse(grpcCode.unimplemented, 'there is no such method')
    : { kind: 'call', method, timeoutMs }
}

const isGrpc = (contentType: string | undefined): boolean =>
  contentType === grpcType ||
  (contentType !== undefined && (contentType.startsWith(`${grpcType}+`) || contentType.startsWith(`${grpcType};`)))

const refuse = (code: number, message: string): Admission => ({ kind: 'status', status: { code, message } })
