import { type DestinationStream, type LevelWithSilent, pino, stdTimeFunctions } from 'pino'
import { redactFields, scrubText } from './redact.ts'

/** Fields of a log line. The name of an error is `err`; a session is named by its digest. */
export type LogFields = Readonly<Record<string, unknown>>

/** Writes log lines. Fields and message pass the redaction of redact.ts. Methods do not throw. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  fatal(message: string, fields?: LogFields): void
}

/** A logger whose level a reload may change. */
export interface RootLogger extends Logger {
  setLevel(level: LevelWithSilent): void
}

/** Writes one JSON object per line to `destination`; default: standard output. */
export const createLogger = (options: {
  readonly level: LevelWithSilent
  readonly destination?: DestinationStream
}): RootLogger => {
  const settings = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    // Errors are described by the redaction; pino's own serializer would lose their type, cause and stack.
    serializers: { err: (described: unknown) => described },
  }
  const sink = pino(settings, options.destination ?? standardOutput())

  const write =
    (level: Exclude<LevelWithSilent, 'silent' | 'trace'>) =>
    (message: string, fields: LogFields = {}): void => {
      if (sink.isLevelEnabled(level)) sink[level](safely(fields), scrubText(message))
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    fatal: write('fatal'),
    setLevel: (level) => {
      sink.level = level
    },
  }
}

/** No reader that stalls and no full disk holds up a turn: 16 MiB are kept meanwhile, and what comes then is lost. */
const standardOutput = (): DestinationStream => {
  const output = pino.destination({ fd: 1, sync: false, maxLength: 16_777_216 })
  // At its exit the process would try again without an end.
  return output.on('error', () => Object.assign(output, { flushSync: () => undefined }))
}

/** If a field cannot be read (a getter that throws), the line is written without its fields. */
const safely = (fields: LogFields): Record<string, unknown> => {
  try {
    return redactFields(fields)
  } catch {
    return { fields: 'unreadable' }
  }
}
