import type { Logger } from './logger.ts'
import { type LabelValue, metricDefinitions } from './metric-definitions.ts'
import { scrubText } from './redact.ts'
import { sentenceOf } from './sentence-of.ts'

export type WarningKind = LabelValue<'warnings', 'kind'>

export const warningKinds: readonly WarningKind[] = metricDefinitions.warnings.labels.kind

/** What holds now. `subject` is what it is about, such as a pod. */
export interface Warning {
  readonly kind: WarningKind
  readonly subject: string
  /** One sentence. */
  readonly text: string
  readonly sinceSeconds: number
}

const outages = {
  store_unavailable: () => 'The session store',
  engine_unavailable: (address: string) => `The engine ${address}`,
  kv_folder_unavailable: (directory: string) => `The KV folder ${directory}`,
  kv_store_unavailable: (address: string) => `The KV store ${address}`,
  kv_events_unavailable: (pod: string) => `The KV event stream of ${pod}`,
} as const satisfies Partial<Record<WarningKind, (subject: string) => string>>

/** Kinds of dependencies that may be away. */
export type OutageKind = keyof typeof outages

const isOutage = (kind: WarningKind): kind is OutageKind => kind in outages

const repeatMs = 60_000

interface Finding extends Omit<Warning, 'sinceSeconds'> {
  readonly sinceMs: number
  /** When it was logged last, and how often it was raised since. */
  readonly logged: { readonly ms: number; readonly times: number }
}

/** Findings that an operator has to settle, and dependencies that are away. They do not affect readiness. */
export interface Warnings {
  /** Adds a finding, and logs it at most once a minute until it is cleared. The sentence says what to do. */
  raise(kind: WarningKind, subject: string, sentence: string): void
  /** Raises that a dependency is away, with the cause in the same sentence. The cause is an error or a text. */
  raiseOutage(kind: OutageKind, subject: string, cause: unknown): void
  /** Removes the finding and logs that it is over. False: there was none. */
  clear(kind: WarningKind, subject: string): boolean
  /** Removes all findings about something that does not exist any more. */
  forget(subject: string): void
  /** All findings that hold, the oldest first. */
  list(): readonly Warning[]
}

/** `nowMs` is a monotonic clock. */
export const createWarnings = (
  log: Pick<Logger, 'warn' | 'info'>,
  nowMs: () => number = () => performance.now(),
): Warnings => {
  const findings = new Map<string, Finding>()
  const keyOf = (kind: WarningKind, subject: string): string => `${kind} ${subject}`
  const secondsSince = (ms: number): number => Math.round((nowMs() - ms) / 1000)

  const raise = (kind: WarningKind, subject: string, sentence: string): void => {
    const now = nowMs()
    const text = scrubText(sentence)
    const known = findings.get(keyOf(kind, subject))
    const { sinceMs = now, logged: { ms, times } = { ms: Number.NEGATIVE_INFINITY, times: 0 } } = known ?? {}
    const isDue = now - ms >= repeatMs
    if (isDue) log.warn(text, { kind, ...(times > 0 ? { times: times + 1 } : {}) })
    const logged = isDue ? { ms: now, times: 0 } : { ms, times: times + 1 }
    findings.set(keyOf(kind, subject), { kind, subject, text, sinceMs, logged })
  }

  return {
    raise,
    raiseOutage: (kind, subject, cause) =>
      raise(kind, subject, `${outages[kind](subject)} is unavailable: ${sentenceOf(cause)}`),
    clear: (kind, subject) => {
      const known = findings.get(keyOf(kind, subject))
      if (known === undefined) return false
      findings.delete(keyOf(kind, subject))
      const text = isOutage(kind) ? `${outages[kind](subject)} is available again` : 'a warning is settled'
      log.info(text, { kind, subject, afterSeconds: secondsSince(known.sinceMs) })
      return true
    },
    forget: (subject) => {
      for (const [key, finding] of findings) if (finding.subject === subject) findings.delete(key)
    },
    list: () =>
      [...findings.values()].map((finding) => {
        const { sinceMs, logged: _, ...shown } = finding
        return { ...shown, sinceSeconds: secondsSince(sinceMs) }
      }),
  }
}
