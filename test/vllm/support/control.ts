import { request } from 'node:http'
import { vllmFleet } from './fleet.ts'

/** What may be done to one server; `restart` ends it first, keeps its ports, and is done when it answers. */
export type FleetOrder = 'pause' | 'resume' | 'kill' | 'restart'

const timeoutMs = 300_000

/** Orders something of the fleet for `coordinator`, `lmcache-<pod>` or `vllm-<pod>`; resolves when it is done. @throws Error when it is refused or fails */
export const orderServer = (server: string, order: FleetOrder): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = request(
      {
        socketPath: vllmFleet().controlSocket,
        method: 'POST',
        path: `/${server}/${order}`,
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        let text = ''
        response
          .setEncoding('utf8')
          .on('data', (part: string) => {
            text += part
          })
          .on('end', () => {
            if (response.statusCode === 204) resolve()
            else reject(new Error(`${order} of ${server} was answered ${response.statusCode}: ${text}`))
          })
          .on('error', reject)
      },
    )
    asked.on('error', reject).end()
  })
