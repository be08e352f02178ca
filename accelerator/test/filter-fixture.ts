import { beforeAll } from '@jest/globals'
import { createTurnsCodec, type TurnAsk, type TurnDecision, toTurnDecision } from '../../src/extproc/turn-messages.ts'
import { compileFilter } from './compiled-filter.ts'
import { SimulatedEnvoy } from './simulated-envoy.ts'

/** How long a turn waits for its decision. */
export const ticksToWait = 20

const codec = createTurnsCodec()

/** What the filter sent on its streams, oldest stream first. */
export type Sent =
  | { readonly token: number; readonly kind: 'ask'; readonly id: number; readonly request: TurnAsk['request'] }
  | { readonly token: number; readonly kind: 'cancel'; readonly id: number }

export const sentBy = (envoy: SimulatedEnvoy): readonly Sent[] =>
  [...envoy.streams.values()].flatMap(({ token, sent }) =>
    sent.flatMap((bytes) => {
      const { asks, cancels } = codec.decode(bytes)
      return [
        ...asks.map((ask): Sent => ({ token, kind: 'ask', ...ask })),
        ...cancels.map((id): Sent => ({ token, kind: 'cancel', id })),
      ]
    }),
  )

/** A gateway's message with these decisions. None: the reply that comes when nothing is decided yet. */
export const reply = (...decisions: readonly TurnDecision[]): Buffer => codec.encode({ decisions, retire: false })

export const retire: Buffer = codec.encode({ decisions: [], retire: true })

export const extend = (id: number, milliseconds: number): TurnDecision => ({ id, extend_milliseconds: milliseconds })

/** Forwards a request with these headers and this metadata. */
export const forward = (
  id: number,
  ctx: Readonly<Record<string, string>> = {},
  more: { readonly setHeaders?: Readonly<Record<string, string>>; readonly pods?: string } = {},
): TurnDecision =>
  toTurnDecision(id, {
    kind: 'forward',
    setHeaders: more.setHeaders ?? {},
    destinations: more.pods,
    ctx,
  })

/** The one item of a list of one. */
export const only = <T>(items: readonly T[]): T => {
  const [item] = items
  if (item === undefined || items.length > 1) throw new Error(`one item is expected, not ${items.length}`)
  return item
}

/** An Envoy with one request that waits, asked about on the stream `token`. */
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
  })
  const start = (cluster?: string): SimulatedEnvoy => new SimulatedEnvoy(module, cluster)
  return {
    start,
    waiting: (headers = { ':path': '/v1/completions' }) => {
      const envoy = start()
      const id = envoy.request(headers)
      return { envoy, id, token: only(sentBy(envoy)).token }
    },
  }
}
