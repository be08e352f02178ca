import type { RpcMethod, RpcStatus } from './transport.ts'

/** What a unary method gives back: a message, or why there is none. */
export type UnaryAnswer<Out> =
  | { readonly kind: 'message'; readonly message: Out }
  | { readonly kind: 'error'; readonly status: RpcStatus }

/** A method of one request and one response. A call without a request, or with a second one, is refused. */
export const createUnaryMethod = <In, Out>(options: {
  readonly path: string
  readonly decode: (bytes: Buffer) => In
  readonly encode: (message: Out) => Buffer
  readonly answer: (request: In) => UnaryAnswer<Out>
}): RpcMethod<In, Out> => ({
  path: options.path,
  longLived: false,
  decode: options.decode,
  encode: options.encode,
  open: (call) => {
    let request: { readonly message: In } | undefined
    return {
      message: (message) => {
        if (request !== undefined) call.end({ code: 'invalid-argument', message: 'one request is expected' })
        request = { message }
      },
      halfClosed: () => {
        if (request === undefined) {
          call.end({ code: 'invalid-argument', message: 'a request is expected' })
          return
        }
        const answer = options.answer(request.message)
        if (answer.kind === 'message') call.send(answer.message)
        call.end(answer.kind === 'message' ? { code: 'ok' } : answer.status)
      },
      closed: () => {},
    }
  },
})
