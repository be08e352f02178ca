import { join } from 'node:path'
import { type ManagedChild, startChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import { packageRoot } from './paths.ts'
import type { Environment, Report } from './run-command.ts'
import { readyOrKilled } from './wait-until-ready.ts'

/** One gateway process. */
export interface StartGatewayOptions {
  /** Its configuration (`CTX_…`, `REDIS_URL`, `PODS`, …) and whatever else the process needs. */
  readonly env: Environment
  /** Where Envoy connects, on 127.0.0.1. Default: a free port. */
  readonly extprocPort?: number | undefined
  /** Default: a free port. */
  readonly adminPort?: number | undefined
  readonly onLine?: Report | undefined
  /** Default: 30,000. */
  readonly readyTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
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
  const { extprocPort = await freePort(), adminPort = await freePort(), onLine, signal } = options
  signal?.throwIfAborted()
  const child = await startChild({
    name: 'gateway',
    command: [process.execPath, join(packageRoot(), 'dist/src/main.js'), 'serve'],
    env: {
      ...options.env,
      CTX_LISTEN_EXTPROC_PORT: String(extprocPort),
      CTX_LISTEN_ADMIN_PORT: String(adminPort),
    },
    onLine,
  })
  const adminUrl = `http://127.0.0.1:${adminPort}`
  // The admin port opens last.
  const timeoutMs = options.readyTimeoutMs ?? 30_000
  await readyOrKilled(child, { kind: 'http', url: `${adminUrl}/healthz` }, { timeoutMs, signal })
  return { extproc: `127.0.0.1:${extprocPort}`, adminUrl, child }
}
