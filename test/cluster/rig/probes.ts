import { connect } from 'node:net'
import { Client, credentials } from '@grpc/grpc-js'
import type { V1Container, V1Probe } from '@kubernetes/client-node'

const portOf = (container: V1Container, port: number | string): number =>
  typeof port === 'number' ? port : (container.ports?.find(({ name }) => name === port)?.containerPort ?? 0)

/** Whether a probe of a container succeeds; without a probe, always. Commands are not supported. */
export const succeeds = async (container: V1Container, probe: V1Probe | undefined, host: string): Promise<boolean> => {
  const timeoutMs = (probe?.timeoutSeconds ?? 1) * 1000
  if (probe?.httpGet !== undefined) {
    const url = `http://${host}:${portOf(container, probe.httpGet.port)}${probe.httpGet.path ?? '/'}`
    const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) }).catch(() => undefined)
    await answer?.body?.cancel()
    return answer !== undefined && answer.status < 400
  }
  if (probe?.grpc !== undefined) return isServing(`${host}:${probe.grpc.port}`, probe.grpc.service ?? '', timeoutMs)
  if (probe?.tcpSocket !== undefined) return isOpen(host, portOf(container, probe.tcpSocket.port))
  return true
}

const bytes = (value: Buffer): Buffer => value

const isServing = (address: string, service: string, timeoutMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const client = new Client(address, credentials.createInsecure())
    // HealthCheckRequest{service}, HealthCheckResponse{status: SERVING}
    const request = Buffer.concat([Buffer.from([10, service.length]), Buffer.from(service)])
    const options = { deadline: Date.now() + timeoutMs }
    client.makeUnaryRequest('/grpc.health.v1.Health/Check', bytes, bytes, request, options, (error, answer) => {
      client.close()
      resolve(error === null && answer?.[1] === 1)
    })
  })

export const isOpen = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = (open: boolean): void => {
      socket.destroy()
      resolve(open)
    }
    socket.once('connect', () => end(true)).once('error', () => end(false))
  })
