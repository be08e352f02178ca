import { unwatchFile, watchFile } from 'node:fs'
import type { Config } from '../config/config.ts'
import type { LoadConfigOutcome } from '../config/load-config.ts'
import { judgeReload } from '../config/reload.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Looked at by its times and its inode, so that a mounted ConfigMap, which is replaced by a link, counts as well. */
const lookIntervalMs = 1_000

/** How the configuration is loaded again. */
export interface ConfigSource {
  /** Undefined: the environment alone. */
  readonly filePath: string | undefined
  /** `previous`: what holds now; a secret that was made at the start stays. */
  load(previous: Config): LoadConfigOutcome
}

/**
 * Loads the configuration again at SIGHUP and whenever its file changes. One that is not valid, or that differs in more
 * than a running gateway can take over, is named in the log and changes nothing. Returns a function that ends it.
 */
export const reloadOnChange = (
  source: ConfigSource,
  parts: {
    readonly current: () => Config
    readonly apply: (config: Config) => void
    readonly log: Logger
    readonly metrics: Metrics
  },
): (() => void) => {
  const { log, metrics } = parts

  const reload = (): void => {
    const loaded = source.load(parts.current())
    if (loaded.kind === 'invalid') {
      metrics.add('config_reloads_total', { result: 'invalid' })
      log.error('the new configuration is not valid; the one before stays', { problems: loaded.problems })
      return
    }
    const judged = judgeReload(parts.current(), loaded.config)
    switch (judged.kind) {
      case 'unchanged':
        log.debug('the configuration has not changed')
        return
      case 'refused':
        metrics.add('config_reloads_total', { result: 'refused' })
        log.error('the new configuration needs a restart; the one before stays', {
          needsRestart: judged.fixed,
        })
        return
      case 'applicable':
        parts.apply(loaded.config)
        metrics.add('config_reloads_total', { result: 'applied' })
        log.info('configuration changed', { changed: judged.changed })
    }
  }

  const { filePath } = source
  process.on('SIGHUP', reload)
  if (filePath !== undefined) watchFile(filePath, { interval: lookIntervalMs, persistent: false }, reload)
  // It may have changed while the gateway started.
  reload()
  return () => {
    process.off('SIGHUP', reload)
    if (filePath !== undefined) unwatchFile(filePath, reload)
  }
}
