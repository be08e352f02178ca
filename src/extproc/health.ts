import { loadProtoMethod } from '../protobuf/load-proto-method.ts'
import { externalProcessorService } from './codec.ts'
import type { StreamHandler, StreamMethod } from './grpc-stream.ts'

/** Whether this process takes requests. */
export interface HealthState {
  /** `false` at first. Set to `true` once requests can be served, and to `false` before a drain. */
  setServing(serving: boolean): void
  /** Whether requests are taken now. */
  isServing(): boolean
  /** Calls `listener` at every change. Returns a function that stops this. */
  onChange(listener: (serving: boolean) => void): () => void
}

export const createHealthState = (): HealthState => {
  const listeners = new Set<(serving: boolean) => void>()
  let current = false
  return {
    setServing: (serving) => {
      if (serving === current) return
      current = serving
      for (const listener of listeners) listener(serving)
    },
    isServing: () => current,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** grpc.health.v1's ServingStatus. */
const servingStatus = { serving: 1, not_serving: 2, service_unknown: 3 } as const
type ServingStatus = keyof typeof servingStatus

/** Services whose health follows the state; `''` is the server as a whole. */
const readinessServices = new Set<string>(['', 'readiness', 'inference-extension', externalProcessorService])

/** `liveness` is always serving. */
const statusOf = (service: string, serving: boolean): ServingStatus => {
  if (service === 'liveness') return 'serving'
  if (!readinessServices.has(service)) return 'service_unknown'
  return serving ? 'serving' : 'not_serving'
}

interface HealthCheckRequest {
  readonly service?: string
}

const codecOf = (name: 'Check' | 'Watch') => {
  const method = loadProtoMethod('health.proto', 'grpc.health.v1.Health', name, { maxBytes: 1_024 })
  return {
    path: method.path,
    decode: (bytes: Buffer) => method.decodeRequest(bytes) as HealthCheckRequest,
    encode: (status: ServingStatus) => method.encodeResponse({ status: servingStatus[status] }),
  }
}

/** Health.Check: the status of a service; undefined for an unknown one. */
export const createHealthCheck = (health: Pick<HealthState, 'isServing'>) => ({
  ...codecOf('Check'),
  answer: ({ service = '' }: HealthCheckRequest): ServingStatus | undefined => {
    const status = statusOf(service, health.isServing())
    return status === 'service_unknown' ? undefined : status
  },
})

/** Health.Watch: the status of a service, and every change of it. */
export const createHealthWatch = (
  health: Pick<HealthState, 'isServing' | 'onChange'>,
): StreamMethod<HealthCheckRequest, ServingStatus> => ({
  ...codecOf('Watch'),
  longLived: true,
  open: (stream): StreamHandler<HealthCheckRequest> => {
    let stop = (): void => {}
    return {
      message: ({ service = '' }) => {
        stop()
        let sent: ServingStatus | undefined
        const send = (serving: boolean): void => {
          const status = statusOf(service, serving)
          if (status !== sent) stream.send(status)
          sent = status
        }
        stop = health.onChange(send)
        send(health.isServing())
      },
      halfClosed: () => {},
      closed: () => stop(),
    }
  },
})
