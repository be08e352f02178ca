import { isIPv6 } from 'node:net'
import type { ListenAddress } from '../transport.ts'

/** An address in grpc-js's own form. */
export const toBindTarget = (address: ListenAddress): string => {
  if ('socketPath' in address) return `unix:${address.socketPath}`
  return `${isIPv6(address.host) ? `[${address.host}]` : address.host}:${address.port}`
}
