import type { Config } from '../config/config.ts'
import type { KeptResponsesParts } from '../context/kept-responses.ts'
import type { ResponseHistory } from '../responses/response-history.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Memory of the turns under way, unless two of the largest take more: their new items, and what is held of answers. */
const maxHeldBytes = 128 * 1024 * 1024

/** What turns use that continue responses and conversations. */
export const createKeptResponsesParts = (
  { turns, sessions }: Pick<Config, 'turns' | 'sessions'>,
  parts: { readonly history: ResponseHistory; readonly log: Logger; readonly metrics: Pick<Metrics, 'add'> },
): KeptResponsesParts => {
  const { history, log, metrics } = parts
  return {
    history,
    ttlSeconds: sessions.defaultTtlSeconds,
    maxBodyBytes: turns.maxBodyBytes,
    memory: { maxBytes: Math.max(maxHeldBytes, 2 * turns.maxBodyBytes), heldBytes: 0 },
    onKept: (outcome, err) => {
      metrics.add('kept_responses_total', { outcome })
      if (outcome !== 'stored' && outcome !== 'no_answer') log.warn('a response was not kept', { outcome, err })
    },
  }
}
