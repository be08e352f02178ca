import { codeAt } from '../../collections/code-at.ts'
import type { RequestHead } from './grpc-request.ts'
import type { HeaderField } from './hpack/header-field.ts'

/** Headers that are about a connection have no place in HTTP/2. */
const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** Takes the fields of one block of headers, keeps what gRPC looks at, and checks it by HTTP/2's rules. */
export class RequestHeaders {
  #method: string | undefined
  #path: string | undefined
  #scheme: string | undefined
  #authority: string | undefined
  #contentType: string | undefined
  #encoding: string | undefined
  #timeout: string | undefined
  #contentLength: number | undefined
  #malformed = false
  #regular = false
  #bytes = 0

  /** What is counted as HTTP/2 has it: names, values, and 32 bytes for each. */
  get bytes(): number {
    return this.#bytes
  }

  /** False for what no client may send as the beginning of a request. */
  get isRequest(): boolean {
    const plain = this.#scheme !== undefined && this.#path !== undefined && this.#path !== ''
    return !this.#malformed && this.#method !== undefined && (plain || this.#method === 'CONNECT')
  }

  /** False for what no client may send as the end of a request. */
  get isTrailers(): boolean {
    return !this.#malformed && this.#method === undefined && this.#scheme === undefined && this.#path === undefined
  }

  get contentLength(): number | undefined {
    return this.#contentLength
  }

  get head(): RequestHead {
    return {
      method: this.#method,
      path: this.#path,
      contentType: this.#contentType,
      encoding: this.#encoding,
      timeout: this.#timeout,
    }
  }

  add(field: HeaderField): void {
    this.#bytes += field.size
    const { name, value } = field
    if (codeAt(name, 0) === 0x3a) {
      this.#addPseudo(name, value)
      return
    }
    this.#regular = true
    switch (name) {
      case 'content-type':
        this.#contentType = value
        return
      case 'grpc-timeout':
        this.#timeout = value
        return
      case 'grpc-encoding':
        this.#encoding = value
        return
      case 'te':
        if (value !== 'trailers') this.#malformed = true
        return
      case 'content-length':
        this.#addContentLength(value)
        return
      default:
        if (name === '' || connectionHeaders.has(name) || hasUpperCase(name)) this.#malformed = true
    }
  }

  #addPseudo(name: string, value: string): void {
    if (this.#regular) this.#malformed = true
    switch (name) {
      case ':method':
        this.#method = this.#once(this.#method, value)
        return
      case ':path':
        this.#path = this.#once(this.#path, value)
        return
      case ':scheme':
        this.#scheme = this.#once(this.#scheme, value)
        return
      case ':authority':
        this.#authority = this.#once(this.#authority, value)
        return
      default:
        this.#malformed = true
    }
  }

  #addContentLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (Number.isNaN(length) || (this.#contentLength ?? length) !== length) this.#malformed = true
    this.#contentLength = length
  }

  #once(before: string | undefined, value: string): string {
    if (before !== undefined) this.#malformed = true
    return value
  }
}

const hasUpperCase = (name: string): boolean => {
  for (let index = 0; index < name.length; index++) {
    const code = codeAt(name, index)
    if (code >= 0x41 && code <= 0x5a) return true
  }
  return false
}
