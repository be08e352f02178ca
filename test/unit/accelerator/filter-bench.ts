import { beforeAll } from '@jest/globals'
import type { ImmediateResponse } from '../../../src/extproc/replies.ts'
import { decodeTurnMessage, type TurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { encodeTurnReply } from '../../../src/extproc/turns/turn-reply.ts'
import { compileFilter } from '../../support/compiled-filter.ts'
import { SimulatedEnvoy } from '../../support/simulated-envoy.ts'

/** A reply of the gateway, with the metadata that the filter passes on. */
type FilterReply =
  | {
      readonly kind: 'proceed' | 'continue'
      readonly phase: string
      readonly changes?: {
        readonly setHeaders: Readonly<Record<string, string>>
        readonly metadata: {
          readonly 'envoy.lb'?: { readonly 'x-gateway-destination-endpoint': string }
          readonly ctx?: Readonly<Record<string, string>>
        }
      }
    }
  | { readonly kind: 'immediate'; readonly answer: ImmediateResponse }
  | { readonly kind: 'extend'; readonly milliseconds: number }

/** A reply as the filter receives it. */
export const encodeReply = (id: number, reply: FilterReply): Buffer => {
  if (reply.kind === 'extend') return encodeTurnReply(id, reply)
  if (reply.kind === 'immediate') return encodeTurnReply(id, { kind: 'respond', response: reply.answer })
  const { setHeaders = {}, metadata = {} } = reply.changes ?? {}
  const destinations = metadata['envoy.lb']?.['x-gateway-destination-endpoint']
  return encodeTurnReply(id, { kind: 'forward', changes: { setHeaders, destinations, ctx: metadata.ctx ?? {} } })
}

/** A verdict that changes nothing. */
export const goOn: FilterReply = {
  kind: 'proceed',
  phase: 'request-headers',
  changes: { setHeaders: {}, metadata: {} },
}

/** How long a turn waits for its verdict. */
export const ticksToWait = 20

/** What was sent on every stream, oldest stream first. */
export const told = (envoy: SimulatedEnvoy): readonly { readonly token: number; readonly message: TurnMessage }[] =>
  [...envoy.streams.values()].flatMap(({ token, sent }) =>
    sent.map((bytes) => ({ token, message: decodeTurnMessage(bytes) })),
  )

/** The one item of a list of one. */
export const only = <T>(items: readonly T[]): T => {
  const [item] = items
  if (item === undefined || items.length > 1) throw new Error(`one is expected, not ${items.length}`)
  return item
}

/** An Envoy with one request that waits, asked for on the stream `token`. */
export interface Waiting {
  readonly envoy: SimulatedEnvoy
  readonly id: number
  readonly token: number
}

/** To be called once, at the top of a suite: compiles the filter before its tests. */
export const useFilter = (): {
  readonly start: (cluster?: string) => SimulatedEnvoy
  readonly waiting: (headers?: Readonly<Record<string, string>>) => Waiting
} => {
  let module: WebAssembly.Module
  beforeAll(async () => {
    module = await compileFilter()
  }, 60_000)
  const start = (cluster?: string): SimulatedEnvoy => new SimulatedEnvoy(module, cluster)
  return {
    start,
    waiting: (headers = { ':path': '/v1/completions' }) => {
      const envoy = start()
      const id = envoy.request(headers)
      const { token } = only(told(envoy))
      return { envoy, id, token }
    },
  }
}
