import { lstat, unlink } from 'node:fs/promises'
import { connect, isIPv6 } from 'node:net'
import type { ListenAddress } from '../transport.ts'

/** An address in grpc-js's own form. */
export const toBindTarget = (address: ListenAddress): string => {
  if ('socketPath' in address) return `unix:${address.socketPath}`
  return `${isIPv6(address.host) ? `[${address.host}]` : address.host}:${address.port}`
}

/**
 * Removes a unix socket that nobody listens on any more: a process that was killed leaves its own behind. A socket in
 * use stays, and binding to it fails.
 */
export const removeStaleSocket = async (address: ListenAddress): Promise<void> => {
  if (!('socketPath' in address)) return
  const found = await lstat(address.socketPath).catch(() => undefined)
  if (found?.isSocket() !== true || (await isInUse(address.socketPath))) return
  await unlink(address.socketPath)
}

const isInUse = (socketPath: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(socketPath)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
