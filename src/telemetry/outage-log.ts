import type { Logger } from './logger.ts'

export interface OutageLogOptions {
  /** What fails, as the subject of a sentence, such as `Redis`. */
  readonly subject: string
  /** The least time between two warnings. Default 60000. */
  readonly repeatMs?: number
  /** A clock in milliseconds that never goes back. Default: that of the process. */
  readonly nowMs?: () => number
}

/** Logs an outage in a few lines, however often it is met: one warning when it begins, one in `repeatMs` while it lasts, one line when it ends. */
export interface OutageLog {
  readonly failed: (error: unknown) => void
  readonly recovered: () => void
}

export const createOutageLog = (
  log: Pick<Logger, 'info' | 'warn'>,
  { subject, repeatMs = 60_000, nowMs = () => performance.now() }: OutageLogOptions,
): OutageLog => {
  let outage: { readonly sinceMs: number; loggedMs: number; faults: number } | undefined
  return {
    failed: (error) => {
      const isNew = outage === undefined
      outage ??= { sinceMs: nowMs(), loggedMs: nowMs(), faults: 0 }
      outage.faults += 1
      if (!isNew && nowMs() - outage.loggedMs < repeatMs) return
      log.warn(`${subject} is unavailable`, { cause: sentenceOf(error), faults: outage.faults })
      outage.loggedMs = nowMs()
      outage.faults = 0
    },
    recovered: () => {
      if (outage === undefined) return
      log.info(`${subject} is available again`, { afterSeconds: Math.round((nowMs() - outage.sinceMs) / 1000) })
      outage = undefined
    },
  }
}

/** The messages of an error and its causes, without stacks. */
export const sentenceOf = (error: unknown): string => {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) messages.push(at.message || at.name)
  return messages.length === 0 ? String(error) : messages.join(': ')
}
