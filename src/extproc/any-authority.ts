import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import hpack from 'hpack.js'

/*
 * Envoy names its cluster as the `:authority` of a gRPC request, and Istio's clusters have names like
 * `outbound|9002||picker.default.svc.cluster.local`. Node.js refuses a `|` there (PROTOCOL_ERROR).
 */

const prefaceBytes = 24
const frameHeaderBytes = 9
const frameType = { headers: 1, continuation: 9 } as const
const flag = { endStream: 1, endHeaders: 4, padded: 8, priority: 32 } as const
const priorityBytes = 5
/** The size that HTTP/2 begins with; Node.js never offers another one. */
const tableBytes = 4096
const maxFrameBytes = 16_384
/** Of Envoy's requests to a picker, which have a dozen headers. A short block may still name an entry of 4 KB 16,000 times. */
const maxBlockBytes = 16_384
const maxHeaderBytes = 65_536
/** As `maxHeaderListPairs` of Node.js. */
const maxHeaders = 128
/** Frames of a block: CONTINUATION frames may be empty. */
const maxBlockFrames = 64

interface Header {
  readonly name: string
  readonly value: string
}

/** The headers of a request, as far as they have come. */
interface HeaderBlock {
  readonly streamId: number
  readonly endStream: number
  readonly parts: Buffer[]
  bytes: number
}

/**
 * The bytes of an HTTP/2 client, each request with an authority that Node.js accepts. Other frames pass unchanged.
 * @throws Error on what is no HTTP/2
 */
export const createAuthorityFilter = (): ((chunk: Buffer) => Buffer) => {
  const decompressor = hpack.decompressor.create({ table: { maxSize: tableBytes } })
  let fault: Error | undefined
  decompressor.on('error', (error) => {
    fault = error
  })
  let held: Buffer = Buffer.alloc(0)
  let toSkip = prefaceBytes
  let block: HeaderBlock | undefined
  let headers: Header[] = []
  let headerBytes = 0
  // Counted one by one: what throws here ends the decoding, and the connection.
  decompressor.push = (header) => {
    headers.push(header)
    headerBytes += header.name.length + header.value.length
    if (headers.length > maxHeaders || headerBytes > maxHeaderBytes) throw new Error('too many headers')
    return true
  }

  const decode = (bytes: Buffer): readonly Header[] => {
    headers = []
    headerBytes = 0
    decompressor.write(bytes)
    decompressor.execute()
    if (fault !== undefined) throw fault
    return headers
  }

  /** A HEADERS or CONTINUATION frame: nothing until the block is complete. */
  const takeHeaders = (type: number, flags: number, streamId: number, payload: Buffer): Buffer => {
    if (type === frameType.headers) {
      const padding = (flags & flag.padded) === 0 ? 0 : 1 + (payload[0] ?? 0)
      const start = ((flags & flag.padded) === 0 ? 0 : 1) + ((flags & flag.priority) === 0 ? 0 : priorityBytes)
      const end = payload.length - Math.max(0, padding - 1)
      block = { streamId, endStream: flags & flag.endStream, parts: [payload.subarray(start, end)], bytes: 0 }
    } else block?.parts.push(payload)
    if (block === undefined || block.streamId !== streamId) throw new Error('a CONTINUATION without HEADERS')
    block.bytes += payload.length
    const { parts, endStream } = block
    if (block.bytes > maxBlockBytes || parts.length > maxBlockFrames) throw new Error('too many headers')
    if ((flags & flag.endHeaders) === 0) return Buffer.alloc(0)
    block = undefined
    const literals = decode(Buffer.concat(parts)).map(({ name, value }) =>
      literalOf(name, name === ':authority' ? value.replace(/[^A-Za-z0-9.:[\]_-]/g, '-') : value),
    )
    return framesOf(streamId, endStream, Buffer.concat(literals))
  }

  /** What is to go on of the bytes held, and 0 bytes once more of them have to come. */
  const next = (): Buffer => {
    if (toSkip === 0 && held.length >= frameHeaderBytes) {
      const length = held.readUIntBE(0, 3)
      const end = frameHeaderBytes + length
      const [type = 0, flags = 0] = held.subarray(3, 5)
      if (type !== frameType.headers && type !== frameType.continuation) toSkip = end
      else if (length > maxBlockBytes) throw new Error('too many headers')
      else if (held.length >= end) {
        const payload = held.subarray(frameHeaderBytes, end)
        const streamId = held.readUInt32BE(5) & 0x7fffffff
        held = held.subarray(end)
        return takeHeaders(type, flags, streamId, payload)
      }
    }
    const passed = held.subarray(0, toSkip)
    toSkip -= passed.length
    held = held.subarray(passed.length)
    return passed
  }

  return (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    const out: Buffer[] = []
    for (let before = -1; before !== held.length; ) {
      before = held.length
      out.push(next())
    }
    return Buffer.concat(out)
  }
}

/** A header that enters no table (RFC 7541, 6.2.2): the decoder of Node.js has an empty one then. */
const literalOf = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0]), ...[name, value].map((text) => textOf(Buffer.from(text, 'latin1')))])

/** Without Huffman's code; the length has a prefix of seven bits. */
const textOf = (text: Buffer): Buffer => {
  const length: number[] = [Math.min(text.length, 127)]
  for (let rest = text.length - 127; rest >= 0; rest = rest < 128 ? -1 : rest >> 7) {
    length.push(rest < 128 ? rest : (rest & 127) | 128)
  }
  return Buffer.concat([Buffer.from(length), text])
}

const framesOf = (streamId: number, endStream: number, block: Buffer): Buffer => {
  const frames: Buffer[] = []
  for (let at = 0; at === 0 || at < block.length; at += maxFrameBytes) {
    const payload = block.subarray(at, at + maxFrameBytes)
    const head = Buffer.alloc(frameHeaderBytes)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = at === 0 ? frameType.headers : frameType.continuation
    head[4] = (at === 0 ? endStream : 0) | (at + maxFrameBytes >= block.length ? flag.endHeaders : 0)
    head.writeUInt32BE(streamId, 5)
    frames.push(head, payload)
  }
  return Buffer.concat(frames)
}

/** The connection of a client, as Node.js is to see it. */
export const acceptAnyAuthority = (socket: Socket): Duplex => {
  const filter = createAuthorityFilter()
  const connection = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  socket.setNoDelay(true)
  socket.on('data', (chunk: Buffer) => {
    try {
      if (!connection.push(filter(chunk))) socket.pause()
    } catch (error) {
      connection.destroy(error instanceof Error ? error : new Error('no HTTP/2'))
    }
  })
  socket.on('end', () => connection.push(null)).on('error', (error) => connection.destroy(error))
  return connection.on('close', () => socket.destroy())
}
