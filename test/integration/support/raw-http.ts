import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One HTTP/1.1 message, read by its framing alone. */
export interface RawMessage {
  readonly startLine: string
  /** In their order, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

const emptyLine = Buffer.from('\r\n\r\n')

/** The messages that follow each other on a connection. @throws Error when bytes are no message, or one is cut short */
export const readMessages = (bytes: Buffer): readonly RawMessage[] => {
  const { messages, isCut } = readWhole(bytes)
  if (isCut) throw new Error(`the last message is cut short: ${bytes.toString('latin1', 0, 200)}`)
  return messages
}

/** As {@link readMessages}, of a connection that may have broken within its last message, which is left out then. */
export const readWhole = (bytes: Buffer): { readonly messages: readonly RawMessage[]; readonly isCut: boolean } => {
  const messages: RawMessage[] = []
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf(emptyLine)
    const head = rest.toString('latin1', 0, headEnd === -1 ? rest.length : headEnd)
    const [startLine = '', ...lines] = head.split('\r\n')
    if (!/^(HTTP\/1\.1 \d{3}\b|[A-Z]+ \S+ HTTP\/1\.1$)/.test(startLine)) throw new Error(`no message: ${startLine}`)
    const headers = lines.map((line) => {
      const colonAt = line.indexOf(':')
      return [line.slice(0, colonAt).toLowerCase(), line.slice(colonAt + 1).trim()] as const
    })
    const body = headEnd === -1 ? undefined : readBody(headers, rest.subarray(headEnd + emptyLine.length))
    if (body === undefined) return { messages, isCut: true }
    messages.push({ startLine, headers, body: body.content })
    rest = rest.subarray(headEnd + emptyLine.length + body.length)
  }
  return { messages, isCut: false }
}

/** All values of a header. `name` in lower case. */
export const headerOf = (message: Pick<RawMessage, 'headers'>, name: string): readonly string[] =>
  message.headers.filter(([key]) => key === name).map(([, value]) => value)

/** `length` is what the body takes up on the wire. Undefined: there is not as much as there should be. */
type Body = { readonly content: Buffer; readonly length: number } | undefined

const readBody = (headers: RawMessage['headers'], rest: Buffer): Body => {
  const lengths = headerOf({ headers }, 'content-length')
  const encodings = headerOf({ headers }, 'transfer-encoding')
  if (lengths.length + encodings.length > 1) throw new Error('the length is given twice')
  if (encodings.includes('chunked')) return readChunks(rest)
  const length = Number(lengths[0] ?? '0')
  return length > rest.length ? undefined : { content: rest.subarray(0, length), length }
}

const readChunks = (bytes: Buffer): Body => {
  const chunks: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (Number.isNaN(size)) throw new Error('a chunk has no size')
    if (size === 0) {
      const end = bytes.indexOf(emptyLine, lineEnd)
      return end === -1 ? undefined : { content: Buffer.concat(chunks), length: end + emptyLine.length }
    }
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
    if (at > bytes.length) return undefined
  }
}

/** A request as text, byte for byte: nothing is checked, completed or escaped. Latin-1. */
export const rawRequest = (request: {
  readonly startLine: string
  readonly headers?: readonly string[]
  readonly body?: string
}): Buffer =>
  Buffer.from([request.startLine, ...(request.headers ?? []), '', request.body ?? ''].join('\r\n'), 'latin1')

/** Connects, and sends the beginning of a request, which stays open. */
export const openRaw = async (port: number, request: Parameters<typeof rawRequest>[0]): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  socket.write(rawRequest(request))
  return socket
}

/** Whether the response is whole and closes the connection: Envoy then waits for the client to close it. */
const isOver = (received: Buffer): boolean => {
  try {
    const last = readMessages(received).at(-1)
    return last !== undefined && headerOf(last, 'connection').includes('close')
  } catch {
    return false
  }
}

/**
 * Sends piece after piece until the server responds, and reads until it closes the connection or says that it will.
 * @throws Error when neither happens in time
 */
export const uploadRaw = async (
  port: number,
  pieces: Iterable<Buffer>,
  options: { readonly timeoutMs?: number } = {},
): Promise<Buffer> => {
  const { timeoutMs = 60_000 } = options
  const socket = connect({ port, host: '127.0.0.1' })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    socket.destroy()
  }, timeoutMs)
  let received = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    if (isOver(received)) socket.end()
  })
  // A server that has responded may reset the connection instead of reading the rest of the request.
  socket.on('error', () => {})
  const closed = anyOf(socket, ['close'])
  for (const piece of pieces) {
    if (received.length > 0 || socket.destroyed) break
    if (!socket.write(piece)) await anyOf(socket, ['drain', 'data', 'close'])
  }
  await closed
  clearTimeout(timer)
  if (isLate) throw new Error(`the connection stayed open; so far it sent: ${received.toString('latin1', 0, 1000)}`)
  return received
}

const anyOf = (socket: Socket, events: readonly ('close' | 'data' | 'drain')[]): Promise<void> =>
  new Promise((resolve) => {
    const settle = (): void => {
      for (const event of events) socket.off(event, settle)
      resolve()
    }
    for (const event of events) socket.on(event, settle)
  })

/** Sends the bytes at once; else as {@link uploadRaw}. */
export const exchangeRaw = (
  port: number,
  bytes: Buffer,
  options: { readonly timeoutMs?: number } = {},
): Promise<Buffer> => uploadRaw(port, [bytes], options)
