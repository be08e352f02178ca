import type { ClockReading } from '../clock-reading.ts'
import type { Check, Problems } from '../finding.ts'

/** Clocks that differ by more than this are apart. The gateway asks for a second; headers do not tell better. */
const apartMs = 1_000

const middle = ({ leastAheadMs, mostAheadMs }: ClockReading): number => (leastAheadMs + mostAheadMs) / 2

/** Clocks that cannot be within a second of the one in the middle. */
const clocksApart = (clocks: readonly ClockReading[]): Problems | string => {
  if (clocks.length < 2) return 'fewer than two clocks could be read'
  const sorted = clocks.toSorted((a, b) => middle(a) - middle(b))
  const reference = sorted[Math.floor((sorted.length - 1) / 2)] ?? sorted[0]
  if (reference === undefined) return []
  return clocks.flatMap((clock): Problems => {
    const aheadMs = clock.leastAheadMs - reference.mostAheadMs
    const behindMs = reference.leastAheadMs - clock.mostAheadMs
    const leastMs = Math.max(aheadMs, behindMs)
    if (leastMs <= apartMs) return []
    const by = Math.round(Math.abs(middle(clock) - middle(reference)) / 1_000)
    return {
      severity: 'warning',
      problem: `The clock of ${clock.of} is ${by} s ${aheadMs > behindMs ? 'ahead of' : 'behind'} that of ${reference.of}.`,
      why: 'Sessions, leases and removals end by so much earlier or later after a failover, and logs and expiry times mislead.',
      fix: 'synchronise it (NTP, chrony) to within a second',
    }
  })
}

export const clockChecks: readonly Check[] = [{ name: 'clocks', run: ({ clocks }) => clocksApart(clocks) }]
