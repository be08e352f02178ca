import type { GatewayRequest, RequestScope } from '../../src/context/context-cache-manager.ts'

/** A request as the tests write it down. A header given as a list was sent several times. */
export interface RequestSketch {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Left out: a body follows. */
  readonly endOfStream?: boolean
  /** Left out: Envoy hands the body over when it is asked for. */
  readonly bodyReadable?: boolean
}

/** The request as the gateway sees it; `POST` unless said otherwise. */
export const gatewayRequest = (sketch: RequestSketch): GatewayRequest => ({
  method: sketch.method ?? 'POST',
  path: sketch.path,
  endOfStream: sketch.endOfStream ?? false,
  bodyReadable: sketch.bodyReadable ?? true,
  header: (name) => {
    const value = sketch.headers?.[name]
    if (value === undefined) return []
    return typeof value === 'string' ? [value] : value
  },
})

/** The surroundings of one decision, as a test watches them. */
export interface WatchedScope extends RequestScope {
  /** Every extension that was asked for, milliseconds. */
  readonly extensions: readonly number[]
  /** The client leaves. */
  leave(): void
}

export const watchedScope = (): WatchedScope => {
  const client = new AbortController()
  const extensions: number[] = []
  return {
    signal: client.signal,
    extensions,
    extendDeadline: (milliseconds) => {
      extensions.push(milliseconds)
    },
    releaseBody: () => {},
    leave: () => {
      client.abort()
    },
  }
}
