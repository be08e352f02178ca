import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { ListenAddress } from '../../../src/extproc/transport.ts'

/** HTTP/2 written by hand, so that a test says every byte on the wire. */

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export const type = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const

export const frame = (kind: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer => {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header.writeUInt8(kind, 3)
  header.writeUInt8(flags, 4)
  header.writeUInt32BE(id, 5)
  return Buffer.concat([header, payload])
}

export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A setting of a SETTINGS frame. */
export const setting = (id: number, value: number): Buffer => Buffer.concat([Buffer.from([0, id]), uint32(value)])

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1')
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const length = [127]
  let rest = bytes.length - 127
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128)
  return Buffer.concat([Buffer.from([...length, rest]), bytes])
}

/** A block of headers as plain literals. */
export const block = (headers: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(
    Object.entries(headers).map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])),
  )

/** What every call begins with. */
export const callHeaders = (path: string): Readonly<Record<string, string>> => ({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': path,
  ':authority': 'x',
  te: 'trailers',
  'content-type': 'application/grpc',
})

/** A message with gRPC's prefix. */
export const message = (content: string | Buffer, compressed = 0): Buffer => {
  const bytes = Buffer.from(content)
  return Buffer.concat([Buffer.from([compressed]), uint32(bytes.length), bytes])
}

export interface SeenFrame {
  readonly kind: number
  readonly flags: number
  readonly id: number
  readonly payload: Buffer
}

/** A connection of its own. */
export interface WireClient {
  readonly socket: Socket
  readonly seen: readonly SeenFrame[]
  send(...bytes: readonly Buffer[]): void
  /** Resolves with the first frame that has come, or comes, of which `wanted` is true. Rejects when the connection ends before. */
  frame(wanted: (frame: SeenFrame) => boolean): Promise<SeenFrame>
  /** Resolves once the server has taken everything that was sent. */
  settled(): Promise<void>
  readonly closed: Promise<void>
}

/** Connects; without `begin` nothing is said yet. */
export const openWire = async (
  address: ListenAddress,
  options: { readonly begin?: boolean; readonly settings?: Buffer } = {},
): Promise<WireClient> => {
  const socket = 'socketPath' in address ? connect(address.socketPath) : connect(address.port, address.host)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.setNoDelay(true)
  const seen: SeenFrame[] = []
  const news = new EventEmitter()
  news.setMaxListeners(0)
  let rest: Buffer = Buffer.alloc(0)
  let over = false
  let pings = 0
  socket.on('data', (piece) => {
    rest = Buffer.concat([rest, piece])
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3)
      seen.push({
        kind: rest.readUInt8(3),
        flags: rest.readUInt8(4),
        id: rest.readUInt32BE(5),
        payload: rest.subarray(9, end),
      })
      rest = rest.subarray(end)
    }
    news.emit('news')
  })
  const closed = once(socket, 'close').then(() => {
    over = true
    news.emit('news')
  })
  const client: WireClient = {
    socket,
    seen,
    closed,
    send: (...bytes) => socket.write(Buffer.concat(bytes)),
    frame: async (wanted) => {
      for (;;) {
        const found = seen.find(wanted)
        if (found !== undefined) return found
        if (over) throw new Error(`the connection ended after ${seen.length} frames`)
        await once(news, 'news')
      }
    },
    settled: async () => {
      const payload = Buffer.alloc(8)
      payload.writeUInt32BE(++pings)
      client.send(frame(type.ping, 0, 0, payload))
      await client.frame(
        ({ kind, flags, payload: echoed }) => kind === type.ping && flags === flag.ack && echoed.equals(payload),
      )
    },
  }
  if (options.begin !== false) client.send(preface, frame(type.settings, 0, 0, options.settings))
  return client
}
