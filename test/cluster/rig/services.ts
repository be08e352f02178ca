import { createSocket } from 'node:dgram'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { V1EndpointSlice, V1Service } from '@kubernetes/client-node'
import { connectApiServer } from '../../../src/routing/kubernetes/api-server.ts'
import { followList } from '../../../src/routing/kubernetes/follow-list.ts'
import type { ControlPlane } from './control-plane.ts'
import { hostAddress, type Network } from './network.ts'

/** What kube-proxy and the cluster's DNS do, in this process. */
export interface Services {
  stop(): Promise<void>
}

const dnsPort = 53
const keyOf = (namespace = 'default', name = ''): string => `${name}.${namespace}.svc.cluster.local`

/** Names of services resolve to their addresses, of headless ones to ready pods; connections to them reach those. */
export const startServices = async (controlPlane: ControlPlane, network: Network): Promise<Services> => {
  const server = await connectApiServer(controlPlane.kubeconfigFile)
  const stopping = new AbortController()
  const proxies = new Map<string, Server>()
  const connections = new Set<Socket>()
  let services = new Map<string, V1Service>()
  let slices: readonly V1EndpointSlice[] = []
  let turn = 0

  /** Ready endpoints of a service, of the port with this name. */
  const endpointsOf = (key: string, portName?: string): readonly { readonly host: string; readonly port: number }[] =>
    slices
      .filter(({ metadata }) => keyOf(metadata?.namespace, metadata?.labels?.['kubernetes.io/service-name']) === key)
      .flatMap(({ endpoints, ports }) => {
        const port = ports?.find(({ name }) => (name ?? '') === (portName ?? ''))?.port ?? ports?.[0]?.port ?? 0
        const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false)
        return ready.flatMap(({ addresses: [host] }) => (host === undefined ? [] : [{ host, port }]))
      })

  const addressesOf = (name: string): readonly string[] => {
    const service = services.get(name)
    if (service === undefined) return []
    const address = service.spec?.clusterIP
    if (address !== undefined && address !== 'None') return [address]
    return [...new Set(endpointsOf(name).map(({ host }) => host))]
  }

  const openProxies = async (key: string, service: V1Service): Promise<void> => {
    const host = service.spec?.clusterIP
    if (host === undefined || host === 'None') return
    for (const { port, name } of service.spec?.ports ?? []) {
      const at = `${host}:${port}`
      if (proxies.has(at)) continue
      const proxy = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
        const endpoints = endpointsOf(key, name)
        const target = endpoints[turn++ % endpoints.length]
        if (target === undefined) return client.resetAndDestroy()
        const pod = connect({ ...target, allowHalfOpen: true, noDelay: true })
        for (const socket of [client, pod]) connections.add(socket.once('close', () => connections.delete(socket)))
        client.on('error', () => pod.resetAndDestroy())
        pod.on('error', () => client.resetAndDestroy())
        return client.pipe(pod).pipe(client)
      })
      proxies.set(at, proxy)
      await network.addService(host)
      proxy.listen({ host, port })
    }
  }

  const dns = createSocket('udp4')
  dns.on('message', (query, { address, port }) => dns.send(answerTo(query, addressesOf), port, address))
  await new Promise<void>((resolve) => dns.bind(dnsPort, hostAddress, resolve))

  const common = { server, query: {}, resyncMs: 600_000, timeoutMs: 10_000, onChange: () => undefined }
  const following = [
    followList({
      ...common,
      path: '/api/v1/services',
      onObjects: (objects) => {
        const found = objects as readonly V1Service[]
        services = new Map(found.map((one) => [keyOf(one.metadata?.namespace, one.metadata?.name), one]))
        for (const [key, service] of services) void openProxies(key, service)
      },
      signal: stopping.signal,
    }),
    followList({
      ...common,
      path: '/apis/discovery.k8s.io/v1/endpointslices',
      onObjects: (objects) => {
        slices = objects as readonly V1EndpointSlice[]
      },
      signal: stopping.signal,
    }),
  ]
  return {
    stop: async () => {
      stopping.abort()
      await Promise.all(following)
      for (const proxy of proxies.values()) proxy.close()
      // A pod whose network goes says no goodbye.
      for (const socket of connections) socket.destroy()
      dns.close()
    },
  }
}

/** The answer to one question of DNS (RFC 1035): A records of the name, or that there are none. */
const answerTo = (query: Buffer, addressesOf: (name: string) => readonly string[]): Buffer => {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = query.subarray(12, at + 5)
  const isForIpv4 = question.readUInt16BE(question.length - 4) === 1
  const addresses = addressesOf(labels.join('.').toLowerCase())
  const shown = isForIpv4 ? addresses : []
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  // An authoritative answer; a name that is not known is an error, so that the resolver tries the next search domain.
  header.writeUInt16BE(addresses.length > 0 ? 0x8580 : 0x8583, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(shown.length, 6)
  // A pointer to the name, type A, class IN, one second, four bytes.
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4])
  return Buffer.concat([
    header,
    question,
    ...shown.map((address) => Buffer.concat([record, Buffer.from(address.split('.').map(Number))])),
  ])
}
