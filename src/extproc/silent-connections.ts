import type { Socket } from 'node:net'

export interface SilenceLimits {
  /** Time for the first byte, milliseconds. */
  readonly limitMs: number
  /** Above this number, the connection that has been silent for the longest time is closed. */
  readonly maxSilent: number
}

/** Connections whose peer has sent nothing yet. Clients of TLS and of HTTP/2 speak first. */
export interface SilentConnections {
  /** Calls `onBytes` once the peer's first bytes are there, unread; never if they do not come within the limits. */
  hold(socket: Socket, onBytes: (socket: Socket) => void): void
  closeAll(): void
}

/** Silent connections cost a socket alone: no TLS, no HTTP/2 session. */
export const createSilentConnections = ({ limitMs, maxSilent }: SilenceLimits): SilentConnections => {
  const silent = new Set<Socket>()
  const close = (socket: Socket): void => {
    silent.delete(socket)
    socket.destroy()
  }
  return {
    hold: (socket, onBytes) => {
      const timer = setTimeout(() => close(socket), limitMs)
      const settle = (): void => {
        clearTimeout(timer)
        silent.delete(socket)
      }
      // Its close follows.
      socket.on('error', () => {})
      socket.once('close', settle)
      socket.once('readable', () => {
        settle()
        // The peer may have closed instead.
        if (socket.readableLength > 0) onBytes(socket)
        else socket.destroy()
      })
      silent.add(socket)
      const [longest] = silent
      if (longest !== undefined && silent.size > maxSilent) close(longest)
    },
    closeAll: () => {
      for (const socket of silent) close(socket)
    },
  }
}
