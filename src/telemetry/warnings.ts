import type { Logger } from './logger.ts'
import { type LabelValue, metricDefinitions } from './metric-definitions.ts'

export type WarningKind = LabelValue<'warnings', 'kind'>

export const warningKinds: readonly WarningKind[] = metricDefinitions.warnings.labels.kind

/** Findings that an operator has to settle. They affect neither turns nor readiness. */
export interface Warnings {
  /** Adds a finding about `subject`, such as a pod, and logs it once, until it is cleared. `text` says what to do, in one sentence. */
  raise(kind: WarningKind, subject: string, text: string): void
  /** Removes the finding, if there is one. */
  clear(kind: WarningKind, subject: string): void
  /** All findings that hold, the oldest first. */
  list(): readonly { readonly kind: WarningKind; readonly text: string }[]
}

export const createWarnings = (log: Pick<Logger, 'warn' | 'info'>): Warnings => {
  const findings = new Map<string, { readonly kind: WarningKind; readonly text: string }>()
  const keyOf = (kind: WarningKind, subject: string): string => `${kind} ${subject}`
  return {
    raise: (kind, subject, text) => {
      const key = keyOf(kind, subject)
      if (!findings.has(key)) log.warn(text)
      findings.set(key, { kind, text })
    },
    clear: (kind, subject) => {
      if (findings.delete(keyOf(kind, subject))) log.info('a warning is settled', { kind, subject })
    },
    list: () => [...findings.values()],
  }
}
