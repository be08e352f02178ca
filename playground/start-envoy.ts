import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ManagedChild } from './child-process.ts'
import { type EnvoyAddresses, type EnvoyConfigFile, readEnvoyConfig } from './envoy-config.ts'
import { freePort } from './free-port.ts'
import { findEnvoy } from './install/find-envoy.ts'
import { ownEnvironment, toolsDir } from './paths.ts'
import { flags } from './run-command.ts'
import { type Launch, startServer } from './start-server.ts'
import { answers } from './wait-until-ready.ts'

/** An Envoy in front of gateways and pods. */
export interface StartEnvoyOptions extends Launch {
  readonly file: EnvoyConfigFile
  readonly addresses: EnvoyAddresses
  /** Changes the configuration, which has these addresses by then. Default: not at all. */
  readonly change?: ((text: string) => string) | undefined
  /** Worker threads. Default: Envoy's own, one per processor. */
  readonly concurrency?: number | undefined
}

/** An Envoy whose listeners and initial clusters are up. */
export interface RunningEnvoy {
  /** `127.0.0.1:9901`. */
  readonly adminAddress: string
  readonly child: ManagedChild
}

/**
 * Finds or installs Envoy, starts it and waits until it reports that it is ready.
 * @throws InstallError, NotReadyError with what Envoy says of a configuration that it refuses, or the signal's reason
 */
export const startEnvoy = async (options: StartEnvoyOptions): Promise<RunningEnvoy> => {
  const { env = ownEnvironment(), onLine: report, signal, change = (text) => text, concurrency } = options
  const tool = await findEnvoy({ env, toolsDir: toolsDir(env), report, signal })
  const adminAddress = options.addresses.admin ?? `127.0.0.1:${await freePort()}`
  // Envoy reads its file while it starts and never again, so it need not outlive that.
  const folder = await mkdtemp(join(tmpdir(), 'envoy-'))
  try {
    const configFile = join(folder, 'envoy.yaml')
    const config = await readEnvoyConfig(options.file, { ...options.addresses, admin: adminAddress })
    await writeFile(configFile, change(config), { mode: 0o600 })
    const child = await startServer({
      ...options,
      name: 'envoy',
      command: [
        ...tool.command,
        ...flags({ 'disable-hot-restart': true, 'config-path': configFile, 'log-level': 'error', concurrency }),
      ],
      ready: answers(`http://${adminAddress}/ready`),
    })
    return { adminAddress, child }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
