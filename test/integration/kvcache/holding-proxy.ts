import { createServer, request } from 'node:http'
import { createLatch } from '../../support/latch.ts'
import { closeAtOnce, listenLocally } from '../../support/local-server.ts'

/** Stands between a connector and an engine, counts restores, and can keep them from the engine for a while. */
export interface HoldingProxy {
  readonly address: string
  restores(): number
  /** From now on restores wait, until the function is called. */
  hold(): () => void
  /** Called with every request that is about to be passed on. */
  onRequest(listener: (line: string) => void | Promise<void>): void
  close(): Promise<void>
}

export const startHoldingProxy = async (target: { readonly port: number }): Promise<HoldingProxy> => {
  let restores = 0
  let gate: Promise<void> = Promise.resolve()
  let listener: (line: string) => void | Promise<void> = () => {}
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming
    const isRestore = method === 'POST' && url?.includes('action=restore') === true
    if (isRestore) restores += 1
    const pass = async (): Promise<void> => {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk)
      if (isRestore) await gate
      await listener(`${method} ${url}`)
      const forward = request({ host: '127.0.0.1', port: target.port, method, path: url, headers })
      // Like a real engine, the one behind a held request acts even when its caller has gone.
      forward.on('response', (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      })
      forward.on('error', () => outgoing.destroy())
      forward.end(Buffer.concat(chunks))
    }
    pass().catch(() => outgoing.destroy())
  })
  return {
    address: `127.0.0.1:${await listenLocally(server)}`,
    restores: () => restores,
    hold: () => {
      const { opened, open } = createLatch()
      gate = opened
      return open
    },
    onRequest: (next) => {
      listener = next
    },
    close: () => closeAtOnce(server),
  }
}
