import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManagedChild, startChild } from './child-process.ts'
import type { ServerTool } from './install/find-tool.ts'
import { flags, type Report } from './run-command.ts'
import { httpGet, readyOrKilled } from './wait-until-ready.ts'

/** An Envoy to run. */
export interface StartEnvoyOptions {
  /** From `findEnvoy`. */
  readonly tool: ServerTool
  /** YAML or JSON. Has to name an admin address; its port may be 0. */
  readonly config: { readonly text: string }
  /** Worker threads. Default: Envoy's own, one per processor. */
  readonly concurrency?: number | undefined
  /** Default: `warning`. */
  readonly logLevel?: 'trace' | 'debug' | 'info' | 'warning' | 'error' | undefined
  /** What relative file names in the configuration count from. Default: this process's working directory. */
  readonly cwd?: string | undefined
  /** Default: 15,000. */
  readonly readyTimeoutMs?: number | undefined
  /** Receives every line that Envoy prints. */
  readonly onLine?: Report | undefined
  readonly signal?: AbortSignal | undefined
}

/** An Envoy whose listeners and initial clusters are up. */
export interface RunningEnvoy {
  /** `127.0.0.1:9901`. */
  readonly adminAddress: string
  readonly child: ManagedChild
}

/**
 * Starts Envoy and waits until it says that it is ready.
 * @throws NotReadyError, with what Envoy says of a configuration that it refuses, or the signal's reason
 */
export const startEnvoy = async (options: StartEnvoyOptions): Promise<RunningEnvoy> => {
  options.signal?.throwIfAborted()
  // Envoy reads its files while it starts and never again, so they need not outlive that.
  const folder = await mkdtemp(join(tmpdir(), 'envoy-'))
  try {
    const [configFile, addressFile] = [join(folder, 'envoy.yaml'), join(folder, 'admin-address')]
    await writeFile(configFile, options.config.text, { mode: 0o600 })
    const child = await startChild({
      name: 'envoy',
      command: [
        ...options.tool.command,
        ...flags({
          'disable-hot-restart': true,
          'config-path': configFile,
          'admin-address-path': addressFile,
          'log-level': options.logLevel ?? 'warning',
          concurrency: options.concurrency,
        }),
      ],
      cwd: options.cwd,
      onLine: options.onLine,
    })
    // Empty as long as Envoy has not written it.
    const adminAddress = async () => (await readFile(addressFile, 'utf8').catch(() => '')).trim()
    const check = async (): Promise<boolean> => {
      const address = await adminAddress()
      return /^\S+:\d+$/.test(address) && (await httpGet(`http://${address}/ready`))?.status === 200
    }
    const description = '200 from /ready at the admin address that the configuration has to name'
    const timeoutMs = options.readyTimeoutMs ?? 15_000
    await readyOrKilled(child, { kind: 'check', description, check }, { timeoutMs, signal: options.signal })
    return { adminAddress: await adminAddress(), child }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
