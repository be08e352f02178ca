import { LRUCache } from 'lru-cache'
import type { LogFields, Logger } from './logger.ts'

const repeatMs = 60_000
/** Different lines that are remembered; above this, the one that was met longest ago is forgotten. */
const maxLines = 1000

/**
 * A log for what may happen on every turn: of equal warnings or equal errors, one a minute is written, with how many
 * there were since the last (`times`). Lines of equal message and text fields are equal. `nowMs` is a monotonic clock.
 */
export const limitRepeats = (log: Logger, nowMs: () => number = () => performance.now()): Logger => {
  const lines = new LRUCache<string, { readonly writtenMs: number; times: number }>({ max: maxLines })
  const limited =
    (level: 'warn' | 'error') =>
    (message: string, fields: LogFields = {}): void => {
      const texts = Object.values(fields).filter((value) => typeof value === 'string')
      const key = JSON.stringify([level, message, ...texts])
      const known = lines.get(key)
      const times = (known?.times ?? 0) + 1
      if (known !== undefined && nowMs() - known.writtenMs < repeatMs) {
        known.times = times
        return
      }
      lines.set(key, { writtenMs: nowMs(), times: 0 })
      log[level](message, times > 1 ? { ...fields, times } : fields)
    }
  return { ...log, warn: limited('warn'), error: limited('error') }
}
