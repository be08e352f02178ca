import { isIPv4 } from 'node:net'
import type { DeepReadonly } from '../options/deep-readonly.ts'
import type { ParsedConfig } from './schema.ts'

type ExtProcPort = DeepReadonly<ParsedConfig['listen']['extproc']>

/** Whether others than Envoy may reach the gRPC port: no Unix socket, no loopback address, no client certificates. */
export const isOpenPort = ({ socketPath, host, tls }: Pick<ExtProcPort, 'socketPath' | 'host' | 'tls'>): boolean =>
  socketPath === undefined && !isLoopback(host) && tls?.clientCa === undefined

/** Whether only processes of the same machine reach the address. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))

/** What such a peer can do, for the log; undefined: nobody but Envoy reaches the port. */
export const openPortWarning = (extproc: ExtProcPort, principalHeader: string | undefined): string | undefined => {
  if (!isOpenPort(extproc)) return undefined
  const poses =
    principalHeader === undefined
      ? 'ask for decisions with credentials that it knows'
      : `be any tenant by the header ${principalHeader}`
  return `Whoever reaches the gRPC port can ${poses}, and report the ends of its own turns as it likes: let Envoy alone reach it, by listen.extproc.tls.clientCa, a Unix socket, a loopback address or a network policy`
}
