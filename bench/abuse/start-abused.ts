import type { Children } from '../../playground/child-process.ts'
import { freePorts } from '../../playground/free-port.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import { startGateway } from '../../playground/start-gateway.ts'
import { startServer } from '../../playground/start-server.ts'
import { answers } from '../../playground/wait-until-ready.ts'
import { type Wiring, wirings } from '../gateway/targets.ts'

/** One gateway behind one Envoy. */
export interface Abused {
  /** `http://127.0.0.1:8000`, of Envoy. */
  readonly url: string
  /** Of the gateway. */
  readonly adminUrl: string
  readonly pid: number
}

export const startAbused = async (options: {
  readonly children: Children
  readonly wiring: Wiring
  /** Options of the gateway. */
  readonly env: Readonly<Record<string, string>>
}): Promise<Abused> => {
  const { children, wiring, env } = options
  const [port = 0, ...ports] = await freePorts(3)
  const pods = ports.map((each) => `127.0.0.1:${each}`)
  const upstream = new URL('./upstream.ts', import.meta.url).pathname
  const command = [process.execPath, upstream, ...ports.map(String)] as const
  await startServer({ name: 'upstream', command, children, ready: answers(`http://${pods[1]}/health`) })
  const gateway = await startGateway({
    children,
    env: {
      PATH: process.env['PATH'] ?? '',
      CTX_TENANT_SECRET: 'a secret of the benchmark that is long enough',
      CTX_LOG_LEVEL: 'error',
      PODS: pods.join(','),
      CONNECTOR: 'none',
      ...env,
    },
  })
  const listen = `127.0.0.1:${port}`
  const addresses = { listen, pods, gateways: [gateway.extproc], connector: 'none' }
  await startEnvoy({ children, file: wirings[wiring], addresses })
  return { url: `http://${listen}`, adminUrl: gateway.adminUrl, pid: gateway.child.pid }
}
