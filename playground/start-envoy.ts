import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ManagedChild } from './child-process.ts'
import { type EnvoyAddresses, type EnvoyConfigFile, readEnvoyConfig } from './envoy-config.ts'
import { findEnvoy } from './install/find-envoy.ts'
import { ownEnvironment, toolsDir } from './paths.ts'
import { flags } from './run-command.ts'
import { type Launch, startServer } from './start-server.ts'
import { httpGet } from './wait-until-ready.ts'

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
 * @throws InstallError, NotReadyError with what Envoy prints about a configuration that it refuses, or the signal's reason
 */
export const startEnvoy = async (options: StartEnvoyOptions): Promise<RunningEnvoy> => {
  const { env = ownEnvironment(), onLine: report, signal, change = (text) => text } = options
  const tool = await findEnvoy({ env, toolsDir: toolsDir(env), report, signal })
  // Envoy reads its files while it starts and never again, so they need not outlive that.
  const folder = await mkdtemp(join(tmpdir(), 'envoy-'))
  try {
    const [configFile, addressFile] = [join(folder, 'envoy.yaml'), join(folder, 'admin-address')]
    await writeFile(configFile, change(await readEnvoyConfig(options.file, options.addresses)), { mode: 0o600 })
    // Empty as long as Envoy has not written it.
    const adminAddress = async () => (await readFile(addressFile, 'utf8').catch(() => '')).trim()
    const child = await startServer({
      ...options,
      name: 'envoy',
      command: [
        ...tool.command,
        ...flags({
          'disable-hot-restart': true,
          'config-path': configFile,
          'admin-address-path': addressFile,
          'log-level': 'error',
          concurrency: options.concurrency,
        }),
      ],
      ready: {
        description: '200 from /ready at the admin address that the configuration has to name',
        check: async () => {
          const address = await adminAddress()
          return /^\S+:\d+$/.test(address) && (await httpGet(`http://${address}/ready`))?.status === 200
        },
      },
    })
    return { adminAddress: await adminAddress(), child }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
