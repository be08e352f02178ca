import { Buffer } from 'node:buffer'
import { headersIn, pairsOf } from './header-pairs.ts'

/** What became of a request that the filter saw. */
export type Fate =
  | { readonly kind: 'waits' }
  /** `properties`: what the filter left for other filters and the access log. */
  | {
      readonly kind: 'went-on'
      readonly headers: Readonly<Record<string, string>>
      readonly properties: Readonly<Record<string, string>>
      readonly body: string
    }
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
  proxy_on_response_headers(id: number, headers: number, isWhole: number): number
  proxy_on_response_body(id: number, length: number, isLast: number): number
  proxy_on_response_trailers(id: number, trailers: number): number
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
  readonly answer: { readonly headers: Record<string, string>; body: Buffer }
}

const ok = 0
const requestBody = 0
const responseBody = 1
const responseHeaders = 2
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
    this.#buffer = encoded(cluster)
    this.isConfigured = this.#exports.proxy_on_vm_start(firstRoot, cluster.length) === 1
    this.#exports.proxy_on_configure(firstRoot, 0)
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
      answer: { headers: {}, body: Buffer.alloc(0) },
    })
    this.#effective = id
    const action = this.#exports.proxy_on_request_headers(id, Object.keys(headers).length, options.isWhole ? 1 : 0)
    if (action !== pause) this.#goOn(id)
    return id
  }

  /** More of a request's body comes, which Envoy only tells of while the filter holds it. */
  body(id: number, text: string, how: 'more' | 'last' | 'before trailers' = 'last'): void {
    const request = this.#requests.get(id)
    if (request?.fate.kind !== 'waits') return
    request.body = Buffer.concat([request.body, Buffer.from(text)])
    this.#effective = id
    const action = this.#exports.proxy_on_request_body(id, request.body.length, how === 'last' ? 1 : 0)
    if (action !== pause) this.#goOn(id)
    if (how !== 'before trailers' || request.fate.kind !== 'waits') return
    this.#effective = id
    if (this.#exports.proxy_on_request_trailers(id, 1) !== pause) this.#goOn(id)
  }

  fate(id: number): Fate | undefined {
    return this.#requests.get(id)?.fate
  }

  /**
   * An answer comes in these pieces. Returns its headers as the client gets them, what the filter held before it was whole, and the notes for the
   * access log.
   */
  answer(
    id: number,
    headers: Readonly<Record<string, string>>,
    pieces: readonly string[],
    end: 'last piece' | 'trailers' = 'last piece',
  ): {
    readonly headers: Readonly<Record<string, string>>
    readonly isHeld: boolean
    readonly notes: string | undefined
  } {
    const request = this.#requests.get(id)
    if (request === undefined) throw new Error('there is no such request')
    const { answer } = request
    Object.assign(answer.headers, headers)
    const onAnswer = (call: () => number): boolean => {
      this.#effective = id
      return call() === pause
    }
    const isHeld = onAnswer(() => this.#exports.proxy_on_response_headers(id, 1, pieces.length === 0 ? 1 : 0))
    for (const [index, piece] of pieces.entries()) {
      const isLast = index === pieces.length - 1 && end === 'last piece'
      // What the filter holds is told of as a whole.
      answer.body = isHeld ? Buffer.concat([answer.body, Buffer.from(piece)]) : Buffer.from(piece)
      const isPaused = onAnswer(() => this.#exports.proxy_on_response_body(id, answer.body.length, isLast ? 1 : 0))
      if (isPaused !== (isHeld && !isLast)) throw new Error('an answer is held to its end, or not at all')
    }
    if (end === 'trailers' && onAnswer(() => this.#exports.proxy_on_response_trailers(id, 1)))
      throw new Error('an answer that is whole is held')
    return { headers: answer.headers, isHeld, notes: request.properties['notes'] }
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
    for (let time = 0; time < times; time++) this.#exports.proxy_on_tick(firstRoot)
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
    this.#exports.proxy_on_configure(this.#lastRoot, 0)
    return this.#lastRoot
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
        const bytes = kind === requestBody ? request?.body : kind === responseBody ? request?.answer.body : this.#buffer
        return bytes === undefined ? notFound : this.#give(bytes.subarray(0, length), returnAt, returnLength)
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
      proxy_get_header_map_pairs: (map: number, returnAt: number, returnLength: number) => {
        const headers = this.#headers(map)
        return headers === undefined ? badArgument : this.#give(pairsOf(headers), returnAt, returnLength)
      },
      proxy_replace_header_map_value: (map: number, name: number, nameLength: number, at: number, length: number) => {
        const headers = this.#headers(map)
        if (headers === undefined) return badArgument
        headers[this.#text(name, nameLength)] = this.#text(at, length)
        return ok
      },
      proxy_remove_header_map_value: (map: number, name: number, nameLength: number) => {
        const headers = this.#headers(map)
        if (headers === undefined) return badArgument
        delete headers[this.#text(name, nameLength)]
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

  #headers(map: number): Record<string, string> | undefined {
    const request = this.#requests.get(this.#effective)
    return map === responseHeaders ? request?.answer.headers : request?.headers
  }

  #goOn(id: number): void {
    const request = this.#requests.get(id)
    if (request?.fate.kind !== 'waits') throw new Error('a request that does not wait goes on')
    const { headers, properties, body } = request
    request.fate = { kind: 'went-on', headers, properties, body: body.toString() }
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
