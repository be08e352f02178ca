import { join } from 'node:path'
import type { ManagedChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import { packageRoot } from './paths.ts'
import type { Environment } from './run-command.ts'
import { type Launch, startServer } from './start-server.ts'
import { answers } from './wait-until-ready.ts'

/** One gateway process. */
export interface StartGatewayOptions extends Launch {
  /** Its configuration (`CTX_…`, `REDIS_URL`, `PODS`, …) and what else the process needs. */
  readonly env: Environment
  /** Where Envoy connects, on 127.0.0.1. Default: a free port. */
  readonly extprocPort?: number | undefined
  /** Metrics and health, on 127.0.0.1. Default: a free port. */
  readonly adminPort?: number | undefined
}

export interface RunningGateway {
  /** Where Envoy connects: `127.0.0.1:50051`. */
  readonly extproc: string
  /** `http://127.0.0.1:9090` */
  readonly adminUrl: string
  readonly child: ManagedChild
}

/**
 * Starts a gateway from the compiled files and waits until Envoy can use it.
 * @throws NotReadyError, or the signal's reason
 */
export const startGateway = async (options: StartGatewayOptions): Promise<RunningGateway> => {
  const { extprocPort = await freePort(), adminPort = await freePort(), env } = options
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const child = await startServer({
    ...options,
    name: 'gateway',
    // The flag as in deploy/Dockerfile.
    command: [process.execPath, '--max-semi-space-size=64', join(packageRoot(), 'dist/src/main.js'), 'serve'],
    env: { ...env, CTX_LISTEN_EXTPROC_PORT: String(extprocPort), CTX_LISTEN_ADMIN_PORT: String(adminPort) },
    // The admin port opens last.
    ready: answers(`${adminUrl}/healthz`),
  })
  return { extproc: `127.0.0.1:${extprocPort}`, adminUrl, child }
}
