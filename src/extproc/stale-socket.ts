import { lstat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import type { ListenAddress } from './transport.ts'

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
