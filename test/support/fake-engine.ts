import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { closeAtOnce } from './local-server.ts'

/** How an engine answers one path: a status with a body, or not at all. */
export type Behaviour = { readonly status: number; readonly body?: string } | 'silent'

export type EnginePath = '/health' | '/metrics' | '/v1/models'

/** An engine that answers checks as a test says. */
export interface FakeEngine {
  readonly address: string
  readonly port: number
  behave(path: EnginePath, behaviour: Behaviour): void
  /** Requests of a path that have come so far. */
  requests(path: EnginePath): number
  stop(): Promise<void>
}

/** Healthy, and without metrics. `at` names an address to come back to. */
export const startFakeEngine = async (
  at: { readonly host?: string; readonly port?: number } = {},
): Promise<FakeEngine> => {
  const behaviours = new Map<string, Behaviour>([['/health', { status: 200 }]])
  const counts = new Map<string, number>()
  const answer = (path: string, response: ServerResponse): void => {
    const behaviour = behaviours.get(path) ?? { status: 404 }
    if (behaviour === 'silent') return
    response.writeHead(behaviour.status).end(behaviour.body)
  }
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    counts.set(path, (counts.get(path) ?? 0) + 1)
    answer(path, response)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at.port ?? 0, at.host ?? '127.0.0.1', resolve)
  })
  const { address, port } = server.address() as AddressInfo
  return {
    address: `${address}:${port}`,
    port,
    behave: (path, behaviour) => {
      behaviours.set(path, behaviour)
    },
    requests: (path) => counts.get(path) ?? 0,
    stop: () => closeAtOnce(server),
  }
}
