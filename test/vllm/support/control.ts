import { Agent, request } from 'undici'
import { vllmFleet } from './fleet.ts'

/** What may be done to one server; `restart` ends it first, keeps its ports, and is done when it answers. */
export type FleetOrder = 'pause' | 'resume' | 'kill' | 'restart'

const timeoutMs = 300_000

/** Orders something for `coordinator`, `lmcache-<pod>` or `vllm-<pod>`, until it is done. @throws Error if it fails */
export const orderServer = async (server: string, order: FleetOrder): Promise<void> => {
  const dispatcher = new Agent({ connect: { socketPath: vllmFleet().controlSocket }, headersTimeout: timeoutMs })
  const { statusCode, body } = await request(`http://fleet/${server}/${order}`, { method: 'POST', dispatcher })
  const text = await body.text()
  await dispatcher.close()
  if (statusCode !== 204) throw new Error(`${order} of ${server} was answered ${statusCode}: ${text}`)
}
