import { type DestinationStream, pino, stdTimeFunctions } from 'pino'
import { redactFields, scrubText } from './redact.ts'

/** From most to least talkative. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

export type LogLevel = (typeof logLevels)[number]

/** Further facts of a log line. An error goes under `err`, a session's or tenant's name through `shortKey`. */
export type LogFields = Readonly<Record<string, unknown>>

/** Writes what happened. Everything passes the redaction of redact.ts first; nothing is thrown. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  fatal(message: string, fields?: LogFields): void
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger
}

/** One JSON object per line, on standard output unless `destination` is another. */
export const createLogger = (options: {
  readonly level: LogLevel
  readonly destination?: DestinationStream
}): Logger => {
  const settings = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const sink = options.destination === undefined ? pino(settings) : pino(settings, options.destination)

  const withFields = (own: LogFields): Logger => {
    const write =
      (level: Exclude<LogLevel, 'silent' | 'trace'>) =>
      (message: string, fields: LogFields = {}): void => {
        if (sink.isLevelEnabled(level)) sink[level](safely({ ...own, ...fields }), scrubText(message))
      }
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      fatal: write('fatal'),
      child: (fields) => withFields({ ...own, ...fields }),
    }
  }
  return withFields({})
}

/** A field that cannot be read (a getter that throws) costs the fields, not the line. */
const safely = (fields: LogFields): Record<string, unknown> => {
  try {
    return redactFields(fields)
  } catch {
    return { fields: 'unreadable' }
  }
}
