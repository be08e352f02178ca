import { Buffer } from 'node:buffer'
import { headersIn, pairsOf } from './header-pairs.ts'

/** What the filter did with a request. */
export type Fate =
  | { readonly kind: 'waits' }
  | { readonly kind: 'forwarded'; readonly headers: Readonly<Record<string, string>>; readonly body: string }
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
  readonly root: number
  readonly sent: Buffer[]
  /** The filter closed its side. */
  isClosed: boolean
}

interface Exports {
  readonly memory: WebAssembly.Memory
  proxy_on_memory_allocate(size: number): number
  proxy_on_vm_start(id: number, length: number): number
  proxy_on_configure(id: number, length: number): number
  proxy_on_request_headers(id: number, headers: number, isWhole: number): number
  proxy_on_request_body(id: number, length: number, isLast: number): number
  proxy_on_request_trailers(id: number, trailers: number): number
  proxy_on_grpc_receive(context: number, token: number, length: number): void
  proxy_on_grpc_close(context: number, token: number, status: number): void
  proxy_on_tick(context: number): void
  proxy_on_delete(id: number): void
}

interface Request {
  fate: Fate
  readonly headers: Record<string, string>
  readonly properties: Record<string, string>
  body: Buffer
}

const ok = 0
const requestBody = 0
const notFound = 1
const badArgument = 2
const pause = 1
const firstRoot = 1
const encoded = (text: string): Buffer => Buffer.from(text, 'latin1')

/**
 * What the filter for turns sees of a worker of Envoy, for its every state to be met in any order: the functions of
 * proxy-wasm's ABI that it uses, streams that this class's caller answers or ends, and requests. Errors of the host are
 * those of Envoy 1.40. What real Envoy does with the filter is for the integration tests.
 */
export class SimulatedEnvoy {
  readonly streams = new Map<number, SimulatedStream>()
  readonly counters = new Map<string, number>()
  /** A gateway that cannot be reached: streams cannot be opened. */
  canOpen = true
  readonly isConfigured: boolean
  readonly #exports: Exports
  readonly #cluster: Buffer
  readonly #requests = new Map<number, Request>()
  readonly #roots = new Set<number>([firstRoot])
  #lastRoot = firstRoot
  readonly #metrics: string[] = []
  #effective = firstRoot
  #nextToken = 2
  #lastId = 1000
  /** What `proxy_get_buffer_bytes` gives, of what is no body. */
  #buffer: Buffer = Buffer.alloc(0)

  constructor(module: WebAssembly.Module, cluster = 'gateway') {
    const instance = new WebAssembly.Instance(module, { env: this.#imports() })
    this.#exports = instance.exports as unknown as Exports
    this.#cluster = encoded(cluster)
    this.#exports.proxy_on_vm_start(firstRoot, 0)
    this.isConfigured = this.#configure(firstRoot)
  }

  /** A request reaches the filter. Returns its id. */
  request(headers: Readonly<Record<string, string>>, options: { readonly isWhole?: boolean } = {}): number {
    this.#lastId += 1
    const id = this.#lastId
    this.#requests.set(id, {
      fate: { kind: 'waits' },
      headers: { ...headers },
      properties: {},
      body: Buffer.alloc(0),
    })
    this.#effective = id
    const action = this.#exports.proxy_on_request_headers(id, Object.keys(headers).length, options.isWhole ? 1 : 0)
    if (action !== pause) this.#forward(id)
    return id
  }

  /** More of a request's body comes, which Envoy only tells of while the filter holds it. */
  body(id: number, text: string, how: 'more' | 'last' | 'before trailers' = 'last'): void {
    const request = this.#requests.get(id)
    if (request?.fate.kind !== 'waits') return
    request.body = Buffer.concat([request.body, Buffer.from(text)])
    this.#effective = id
    const action = this.#exports.proxy_on_request_body(id, request.body.length, how === 'last' ? 1 : 0)
    if (action !== pause) this.#forward(id)
    if (how !== 'before trailers' || request.fate.kind !== 'waits') return
    this.#effective = id
    if (this.#exports.proxy_on_request_trailers(id, 1) !== pause) this.#forward(id)
  }

  fate(id: number): Fate | undefined {
    return this.#requests.get(id)?.fate
  }

  /** What the filter keeps with a request for itself and for the access log. */
  property(id: number, name: string): string | undefined {
    return this.#requests.get(id)?.properties[name]
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
    this.#effective = Math.max(...this.#roots)
    this.#exports.proxy_on_grpc_close(this.#effective, token, 14)
    if (this.streams.has(token)) throw new Error('Envoy is left with a stream that is gone')
  }

  tick(times = 1): void {
    for (let time = 0; time < times; time++) for (const root of this.#roots) this.#exports.proxy_on_tick(root)
  }

  /** Envoy is done with a request. */
  delete(id: number): void {
    this.#exports.proxy_on_delete(id)
    this.#requests.delete(id)
  }

  /** The filter is configured once more, as with a new listener. Returns the context of that. */
  addRoot(): number {
    this.#lastRoot += 1
    this.#roots.add(this.#lastRoot)
    this.#configure(this.#lastRoot)
    return this.#lastRoot
  }

  #configure(root: number): boolean {
    this.#buffer = this.#cluster
    this.#effective = root
    return this.#exports.proxy_on_configure(root, this.#cluster.length) === 1
  }

  /** A listener goes, and its filter's context (else the oldest there is) with its streams. */
  removeRoot([root = firstRoot] = [...this.#roots]): void {
    this.#roots.delete(root)
    for (const [token, stream] of this.streams) if (stream.root === root) this.streams.delete(token)
    this.#exports.proxy_on_delete(root)
  }

  #imports(): Record<string, (...args: never[]) => number> {
    return {
      proxy_get_buffer_bytes: (
        kind: number,
        _start: number,
        length: number,
        returnAt: number,
        returnLength: number,
      ) => {
        const request = this.#requests.get(this.#effective)
        const bytes = kind === requestBody ? request?.body : this.#buffer
        if (bytes === undefined) return notFound
        // As Envoy does, which writes no result for an empty buffer.
        return bytes.length === 0 ? ok : this.#give(bytes.subarray(0, length), returnAt, returnLength)
      },
      proxy_set_buffer_bytes: (_kind: number, start: number, length: number, at: number, bytesLength: number) => {
        const request = this.#requests.get(this.#effective)
        if (request === undefined) return notFound
        if (start !== 0 || length > request.body.length) return badArgument
        request.body = Buffer.concat([this.#bytes(at, bytesLength), request.body.subarray(length)])
        return ok
      },
      proxy_get_property: (path: number, pathLength: number, returnAt: number, returnLength: number) => {
        const value = this.#requests.get(this.#effective)?.properties[this.#text(path, pathLength)]
        return value === undefined ? notFound : this.#give(encoded(value), returnAt, returnLength)
      },
      proxy_get_header_map_pairs: (_map: number, returnAt: number, returnLength: number) => {
        const headers = this.#requests.get(this.#effective)?.headers
        return headers === undefined ? badArgument : this.#give(pairsOf(headers), returnAt, returnLength)
      },
      proxy_replace_header_map_value: (_map: number, name: number, nameLength: number, at: number, length: number) => {
        const headers = this.#requests.get(this.#effective)?.headers
        if (headers === undefined) return badArgument
        headers[this.#text(name, nameLength)] = this.#text(at, length)
        return ok
      },
      proxy_set_property: (path: number, pathLength: number, at: number, length: number) => {
        const request = this.#requests.get(this.#effective)
        if (request === undefined) return notFound
        request.properties[this.#text(path, pathLength)] = this.#text(at, length)
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
        this.streams.set(token, { token, root: this.#effective, sent: [], isClosed: false })
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
      proxy_grpc_cancel: (token: number) => (this.streams.delete(token) ? ok : notFound),
      proxy_set_effective_context: (id: number) => {
        if (!this.#roots.has(id) && !this.#requests.has(id)) return badArgument
        this.#effective = id
        return ok
      },
      proxy_continue_stream: () => {
        this.#forward(this.#effective)
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

  #forward(id: number): void {
    const request = this.#requests.get(id)
    if (request?.fate.kind !== 'waits') throw new Error('a request that does not wait is forwarded')
    const { headers, body } = request
    request.fate = { kind: 'forwarded', headers, body: body.toString() }
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
