import type { LabelValues } from './labelled-cells.ts'
import type { MetricName } from './metric-definitions.ts'

/** One value of a counter or histogram. */
interface Told {
  readonly name: MetricName
  readonly value: number
  readonly labels: LabelValues
}

/** So many are recorded together, in some twenty microseconds. */
const mostTold = 256
const delayMs = 100

/**
 * Values that are recorded a little after they were told. A turn tells of six while its client waits for the first token. What it takes to look up where
 * they belong is small for many in a row, and several times that for each alone.
 */
export interface DeferredRecords {
  tell(name: MetricName, value: number, labels: LabelValues): void
  /** Records all that was told. */
  settle(): void
}

/** `record` must not throw. */
export const createDeferredRecords = (
  record: (name: MetricName, value: number, labels: LabelValues) => void,
): DeferredRecords => {
  let told: Told[] = []
  let isTimed = false

  const settle = (): void => {
    const due = told
    told = []
    for (const { name, value, labels } of due) record(name, value, labels)
  }

  const onTimer = (): void => {
    isTimed = false
    settle()
  }

  return {
    tell: (name, value, labels) => {
      told.push({ name, value, labels })
      if (told.length >= mostTold) settle()
      if (isTimed) return
      isTimed = true
      setTimeout(onTimer, delayMs).unref()
    },
    settle,
  }
}
