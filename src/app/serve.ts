import type { Config } from '../config/config.ts'
import { openPortWarning } from '../config/open-port.ts'
import { connectorOf, poolsOf } from '../config/pools.ts'
import { addressOf } from '../routing/pod.ts'
import { createLogger, type Logger } from '../telemetry/logger.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { sentenceOf } from '../telemetry/sentence-of.ts'
import { type App, createApp } from './create-app.ts'
import { type ConfigSource, reloadOnChange } from './reload-config.ts'

/** Runs the gateway until `untilStopped` resolves. Resolves to the exit code. */
export const serve = async (
  config: Config,
  parts: {
    readonly version: string
    readonly untilStopped: () => Promise<NodeJS.Signals>
    readonly source: ConfigSource
  },
): Promise<number> => {
  const { version } = parts
  const log = createLogger({ level: config.log.level })
  const metrics = createMetrics({ version })
  const app = await create(config, { log, metrics, version })
  const openPort = openPortWarning(config.listen.extproc, config.tenant.principalHeader)
  if (openPort !== undefined) log.warn(openPort)
  const stopped = parts.untilStopped()
  try {
    const { extproc, admin } = await app.start()
    log.info('ready', {
      version,
      extproc: 'socketPath' in extproc ? extproc.socketPath : addressOf(extproc.host, extproc.port),
      admin: `http://${addressOf(admin.host, admin.port)}`,
      store: config.sessions.store,
      pools: poolsOf(config).map(({ name, kv, dns, pods }) => ({
        name,
        connector: connectorOf(kv),
        pods: dns?.name ?? pods,
      })),
      policy: config.routing.policy,
    })
  } catch (error) {
    logFault(log, error)
    await app.stop()
    return 1
  }
  const apply = (next: Config): void => {
    app.reconfigure(next)
    log.setLevel(next.log.level)
  }
  const endReloads = reloadOnChange(parts.source, { current: () => app.config(), apply, log, metrics })
  log.info('stopping', { signal: await stopped })
  endReloads()
  await app.stop()
  log.info('stopped')
  return 0
}

const create = async (config: Config, parts: Parameters<typeof createApp>[1]): Promise<App> => {
  try {
    return await createApp(config, parts)
  } catch (error) {
    logFault(parts.log, error)
    // Connections that were opened before the failure would keep the process alive.
    return process.exit(1)
  }
}

const startFault = 'the gateway could not start'

/** The stack says nothing of a configuration, which mostly is at fault. */
const logFault = (log: Logger, error: unknown): void => {
  log.fatal(startFault, { cause: sentenceOf(error) })
  log.debug(startFault, { err: error })
}

/** Creates all parts, starts none; they end with the process. Resolves to what `serve` would say if it failed. */
export const findCreationFault = async (config: Config, version: string): Promise<string | undefined> => {
  try {
    await createApp(config, { log: createLogger({ level: 'silent' }), metrics: createMetrics({ version }), version })
    return undefined
  } catch (error) {
    return `${startFault}: ${sentenceOf(error)}`
  }
}
