import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Where the header of each message on the bus of a cluster names its sender: `clusterMsg.sender` in cluster.h. */
const [senderFrom, senderTo] = [40, 80]

/** The only way to the bus port of one node: its peers are told the port of this proxy. */
export interface BusProxy {
  /** Ends the connections of peers that may not pass any longer. */
  recheck(): void
  close(): void
}

/**
 * Passes on what peers say to a node, as long as `mayPass` allows it. `sender` is the id of the peer, which speaks first.
 * A peer that may not pass is hung up on, again and again: that looks to it as a network that is cut.
 */
export const startBusProxy = async (options: {
  readonly port: number
  readonly busPort: number
  readonly mayPass: (sender: string) => boolean
}): Promise<BusProxy> => {
  const passing = new Map<Socket, string>()
  const admit = (peer: Socket, sender: string, first: Buffer): void => {
    if (!options.mayPass(sender)) {
      peer.destroy()
      return
    }
    const node = connect(options.busPort, '127.0.0.1')
    passing.set(peer, sender)
    node.on('error', () => peer.destroy()).on('close', () => peer.destroy())
    peer.on('close', () => {
      passing.delete(peer)
      node.destroy()
    })
    node.write(first)
    peer.pipe(node).pipe(peer)
  }
  const server = createServer((peer) => {
    let heard = Buffer.alloc(0)
    const listen = (bytes: Buffer): void => {
      heard = Buffer.concat([heard, bytes])
      if (heard.length < senderTo) return
      peer.off('data', listen)
      admit(peer, heard.toString('latin1', senderFrom, senderTo), heard)
    }
    peer.on('error', () => peer.destroy()).on('data', listen)
  })
  await once(server.listen(options.port, '127.0.0.1'), 'listening')
  return {
    recheck: () => {
      for (const [peer, sender] of passing) if (!options.mayPass(sender)) peer.destroy()
    },
    close: () => {
      server.close()
      for (const peer of passing.keys()) peer.destroy()
    },
  }
}
