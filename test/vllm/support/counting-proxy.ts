import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Stands between a connector and LMCache's coordinator, counts prefetches, and can keep them from it for a while. */
export interface CountingProxy {
  readonly address: string
  /** Prefetches into this instance so far. */
  prefetches(instanceId: string): number
  /** From now on prefetches wait, until the function is called. */
  hold(): () => void
  close(): Promise<void>
}

export const startCountingProxy = async (target: URL): Promise<CountingProxy> => {
  const counts = new Map<string, number>()
  let gate: Promise<void> = Promise.resolve()
  const server = createServer((incoming, outgoing) => {
    const pass = async (): Promise<void> => {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk)
      const body = Buffer.concat(chunks)
      if (incoming.method === 'POST' && incoming.url === '/cache/prefetches') {
        const instance = /"instance_id":"([^"]*)"/.exec(body.toString('latin1'))?.[1] ?? ''
        counts.set(instance, (counts.get(instance) ?? 0) + 1)
        await gate
      }
      const { method, url, headers } = incoming
      const forward = request({ host: target.hostname, port: target.port, method, path: url, headers })
      forward.on('response', (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      })
      forward.on('error', () => outgoing.destroy())
      forward.end(body)
    }
    pass().catch(() => outgoing.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    address: `127.0.0.1:${port}`,
    prefetches: (instanceId) => counts.get(instanceId) ?? 0,
    hold: () => {
      let open = (): void => {}
      gate = new Promise((resolve) => {
        open = resolve
      })
      return open
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
