import type { RpcCall, RpcMethod, RpcReceiver } from '../extproc/transport.ts'
import { createUnaryMethod } from '../extproc/unary-method.ts'
import { loadWireMethod, type WireMethod } from '../extproc/wire-methods.ts'
import type { HealthState } from './grpc-health-state.ts'

/** grpc.health.v1's ServingStatus. */
const servingStatus = { serving: 1, 'not-serving': 2, 'service-unknown': 3 } as const

type ServingStatus = keyof typeof servingStatus

type HealthCodec = Pick<RpcMethod<string, ServingStatus>, 'path' | 'decode' | 'encode'>

/** The messages of both methods as bytes. */
export interface HealthCodecs {
  readonly check: HealthCodec
  readonly watch: HealthCodec
}

/** True as long as the process can answer at all. */
const livenessService = 'liveness'

/** Can the process be sent requests? `''` asks for the server as a whole. */
const readinessServices: ReadonlySet<string> = new Set(['', 'readiness', 'envoy.service.ext_proc.v3.ExternalProcessor'])

/**
 * grpc.health.v1 over a HealthState. `liveness` is always serving; ``, `readiness` and the name of the ext_proc service
 * follow the state. Any other service is unknown. The codecs are those of protos/ unless given.
 */
export const createHealthMethods = (
  health: HealthState,
  codecs: HealthCodecs = loadCodecs(),
): readonly RpcMethod<string, ServingStatus>[] => [
  createUnaryMethod({
    ...codecs.check,
    answer: (service) => {
      const status = statusOf(service, health.isServing())
      return status === 'service-unknown'
        ? { kind: 'error', status: { code: 'not-found', message: 'unknown service' } }
        : { kind: 'message', message: status }
    },
  }),
  { ...codecs.watch, longLived: true, open: (call) => openWatch(call, health) },
]

const openWatch = (call: RpcCall<ServingStatus>, health: HealthState): RpcReceiver<string> => {
  let stop = (): void => {}
  return {
    message: (service) => {
      stop()
      let told: ServingStatus | undefined
      const tell = (serving: boolean): void => {
        const status = statusOf(service, serving)
        if (status !== told) call.send(status)
        told = status
      }
      stop = health.onChange(tell)
      tell(health.isServing())
    },
    halfClosed: () => {},
    closed: () => stop(),
  }
}

const statusOf = (service: string, serving: boolean): ServingStatus => {
  if (service === livenessService) return 'serving'
  if (!readinessServices.has(service)) return 'service-unknown'
  return serving ? 'serving' : 'not-serving'
}

const loadCodecs = (): HealthCodecs => ({
  check: toCodec(loadWireMethod('health.proto', 'grpc.health.v1.Health', 'Check')),
  watch: toCodec(loadWireMethod('health.proto', 'grpc.health.v1.Health', 'Watch')),
})

const toCodec = (wire: WireMethod): HealthCodec => ({
  path: wire.path,
  decode: (bytes) => (wire.decodeRequest(bytes) as { readonly service?: string }).service ?? '',
  encode: (status) => wire.encodeResponse({ status: servingStatus[status] }),
})
