import { Buffer } from 'node:buffer'

/** What became of a request that the filter saw. */
export type Fate =
  | { readonly kind: 'waits' }
  /** `note` is what the filter left for the Lua filter. */
  | { readonly kind: 'went-on'; readonly headers: Readonly<Record<string, string>>; readonly note: string | undefined }
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly details: string
      readonly headers: Readonly<Record<string, string>>
      readonly body: string
    }

/** A gRPC stream that the filter opened. */
export interface SimulatedStream {
  readonly token: number
  readonly sent: Buffer[]
  /** The filter closed its side. */
  isClosed: boolean
}

interface Exports {
  readonly memory: WebAssembly.Memory
  proxy_on_memory_allocate(size: number): number
  proxy_on_context_create(id: number, parent: number): void
  proxy_on_vm_start(id: number, length: number): number
  proxy_on_request_headers(id: number, headers: number, isWhole: number): number
  proxy_on_grpc_receive(context: number, token: number, length: number): void
  proxy_on_grpc_close(context: number, token: number, status: number): void
  proxy_on_tick(context: number): void
  proxy_on_delete(id: number): void
}

const ok = 0
const notFound = 1
const badArgument = 2
const pause = 1
const firstRoot = 1
const encoded = (text: string): Buffer => Buffer.from(text, 'latin1')

/**
 * What the filter for turns sees of a worker of Envoy, for its every state to be met in any order: the functions of proxy-wasm's ABI that it uses,
 * streams that this class's caller answers or ends, and requests. Errors of the host are those of Envoy 1.40. What real Envoy does with the filter is
 * for the integration tests.
 */
export class SimulatedEnvoy {
  readonly streams = new Map<number, SimulatedStream>()
  readonly counters = new Map<string, number>()
  /** A gateway that cannot be reached: streams cannot be opened. */
  canOpen = true
  readonly isConfigured: boolean
  readonly #exports: Exports
  readonly #requests = new Map<number, { fate: Fate; headers: Record<string, string>; note: string | undefined }>()
  readonly #roots = new Set<number>([firstRoot])
  readonly #metrics: string[] = []
  #effective = firstRoot
  #nextToken = 2
  #lastId = 1000
  /** What `proxy_get_buffer_bytes` gives. */
  #buffer: Buffer = Buffer.alloc(0)

  constructor(module: WebAssembly.Module, cluster = 'gateway') {
    const instance = new WebAssembly.Instance(module, { env: this.#imports() })
    this.#exports = instance.exports as unknown as Exports
    this.#exports.proxy_on_context_create(firstRoot, 0)
    this.#buffer = encoded(cluster)
    this.isConfigured = this.#exports.proxy_on_vm_start(firstRoot, cluster.length) === 1
  }

  /** A request reaches the filter. Returns its id. */
  request(headers: Readonly<Record<string, string>>, options: { readonly isWhole?: boolean } = {}): number {
    this.#lastId += 1
    const id = this.#lastId
    const request = { fate: { kind: 'waits' } as Fate, headers: { ...headers }, note: undefined }
    this.#requests.set(id, request)
    this.#exports.proxy_on_context_create(id, Math.max(...this.#roots))
    this.#effective = id
    const action = this.#exports.proxy_on_request_headers(id, Object.keys(headers).length, options.isWhole ? 1 : 0)
    if (action !== pause) this.#goOn(id)
    return id
  }

  fate(id: number): Fate | undefined {
    return this.#requests.get(id)?.fate
  }

  waiting(): readonly number[] {
    return [...this.#requests].filter(([, { fate }]) => fate.kind === 'waits').map(([id]) => id)
  }

  /** The gateway says something on a stream. */
  receive(token: number, message: Buffer): void {
    this.#buffer = message
    this.#exports.proxy_on_grpc_receive(firstRoot, token, message.length)
  }

  /** A stream is over by the gateway, or by its connection. */
  end(token: number): void {
    this.streams.delete(token)
    this.#exports.proxy_on_grpc_close(firstRoot, token, 14)
  }

  tick(times = 1): void {
    for (let time = 0; time < times; time++) this.#exports.proxy_on_tick(firstRoot)
  }

  /** Envoy is done with a request. */
  delete(id: number): void {
    this.#exports.proxy_on_delete(id)
    this.#requests.delete(id)
  }

  /** The filter is configured anew, as with a new listener: from now on another context is there, and the one before goes with its streams. */
  replaceRoot(): void {
    const [old = firstRoot] = this.#roots
    const next = old + 1
    this.#exports.proxy_on_context_create(next, 0)
    this.#roots.delete(old)
    this.#roots.add(next)
    this.streams.clear()
  }

  #imports(): Record<string, (...args: never[]) => number> {
    return {
      proxy_get_buffer_bytes: (_kind: number, _start: number, length: number, returnAt: number, returnLength: number) =>
        this.#give(this.#buffer.subarray(0, length), returnAt, returnLength),
      proxy_get_header_map_pairs: (_map: number, returnAt: number, returnLength: number) => {
        const request = this.#requests.get(this.#effective)
        return request === undefined ? badArgument : this.#give(pairsOf(request.headers), returnAt, returnLength)
      },
      proxy_replace_header_map_value: (_map: number, name: number, nameLength: number, at: number, length: number) => {
        const request = this.#requests.get(this.#effective)
        if (request === undefined) return badArgument
        request.headers[this.#text(name, nameLength)] = this.#text(at, length)
        return ok
      },
      proxy_set_property: (_path: number, _pathLength: number, at: number, length: number) => {
        const request = this.#requests.get(this.#effective)
        if (request === undefined) return notFound
        request.note = this.#text(at, length)
        return ok
      },
      proxy_send_local_response: (
        status: number,
        details: number,
        detailsLength: number,
        body: number,
        bodyLength: number,
        headers: number,
        headersLength: number,
      ) => {
        const request = this.#requests.get(this.#effective)
        if (request?.fate.kind !== 'waits') throw new Error('an answer to a request that does not wait')
        request.fate = {
          kind: 'answered',
          status,
          details: this.#text(details, detailsLength),
          headers: headersIn(this.#bytes(headers, headersLength)),
          body: this.#text(body, bodyLength),
        }
        return ok
      },
      proxy_grpc_stream: (...args: number[]) => {
        if (!this.canOpen || !this.#roots.has(this.#effective)) return badArgument
        const token = this.#nextToken
        this.#nextToken += 2
        this.streams.set(token, { token, sent: [], isClosed: false })
        this.#view().setUint32(args[8] ?? 0, token, true)
        return ok
      },
      proxy_grpc_send: (token: number, at: number, length: number) => {
        const stream = this.streams.get(token)
        if (stream === undefined || !this.#roots.has(this.#effective)) return notFound
        if (stream.isClosed) throw new Error('a message on a stream that the filter has closed')
        stream.sent.push(this.#bytes(at, length))
        return ok
      },
      proxy_grpc_close: (token: number) => {
        const stream = this.streams.get(token)
        if (stream === undefined) return notFound
        stream.isClosed = true
        return ok
      },
      proxy_set_effective_context: (id: number) => {
        if (!this.#roots.has(id) && !this.#requests.has(id)) return badArgument
        this.#effective = id
        return ok
      },
      proxy_continue_stream: () => {
        this.#goOn(this.#effective)
        return ok
      },
      proxy_set_tick_period_milliseconds: () => ok,
      proxy_define_metric: (_kind: number, name: number, length: number, returnId: number) => {
        this.#metrics.push(this.#text(name, length))
        this.#view().setUint32(returnId, this.#metrics.length, true)
        return ok
      },
      proxy_increment_metric: (id: number, by: bigint) => {
        const name = this.#metrics[id - 1]
        if (name === undefined) throw new Error('a metric that was not defined')
        this.counters.set(name, (this.counters.get(name) ?? 0) + Number(by))
        return ok
      },
    }
  }

  #goOn(id: number): void {
    const request = this.#requests.get(id)
    if (request?.fate.kind !== 'waits') throw new Error('a request that does not wait goes on')
    request.fate = { kind: 'went-on', headers: request.headers, note: request.note }
  }

  #view(): DataView {
    return new DataView(this.#exports.memory.buffer)
  }

  #bytes(at: number, length: number): Buffer {
    return Buffer.from(this.#exports.memory.buffer.slice(at, at + length))
  }

  #text(at: number, length: number): string {
    return this.#bytes(at, length).toString('latin1')
  }

  #give(bytes: Buffer, returnAt: number, returnLength: number): number {
    const at = this.#exports.proxy_on_memory_allocate(bytes.length)
    new Uint8Array(this.#exports.memory.buffer).set(bytes, at)
    this.#view().setUint32(returnAt, at, true)
    this.#view().setUint32(returnLength, bytes.length, true)
    return ok
  }
}

/** Headers as proxy-wasm lays them out. */
export const pairsOf = (headers: Readonly<Record<string, string>>): Buffer => {
  const pairs = Object.entries(headers).map(([name, value]) => [encoded(name), encoded(value)] as const)
  const lengths = Buffer.alloc(4 + 8 * pairs.length)
  lengths.writeUInt32LE(pairs.length, 0)
  for (const [index, [name, value]] of pairs.entries()) {
    lengths.writeUInt32LE(name.length, 4 + 8 * index)
    lengths.writeUInt32LE(value.length, 8 + 8 * index)
  }
  const end = Buffer.alloc(1)
  return Buffer.concat([lengths, ...pairs.flatMap(([name, value]) => [name, end, value, end])])
}

const headersIn = (bytes: Buffer): Readonly<Record<string, string>> => {
  const count = bytes.readUInt32LE(0)
  const headers: Record<string, string> = {}
  let at = 4 + 8 * count
  for (let index = 0; index < count; index++) {
    const nameEnd = at + bytes.readUInt32LE(4 + 8 * index)
    const valueEnd = nameEnd + 1 + bytes.readUInt32LE(8 + 8 * index)
    headers[bytes.toString('latin1', at, nameEnd)] = bytes.toString('latin1', nameEnd + 1, valueEnd)
    at = valueEnd + 1
  }
  return headers
}
