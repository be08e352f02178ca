import type { Failure, Ledger } from './ledger.ts'
import { growthOf, leastOfQuarters, type Watched } from './process-samples.ts'

/** What a soak came to, as tables. */
export const soakReport = (soak: {
  readonly ledger: Ledger
  readonly watched: readonly Watched[]
  /** Of the gateway that is never killed, after collections, bytes. */
  readonly inUse: readonly number[]
  readonly leftovers: { readonly files: readonly string[]; readonly keys: readonly string[] }
  readonly minutes: number
  readonly machine: string
}): string => {
  const { ledger, watched, inUse, leftovers } = soak
  const faults = countsOf(ledger.faults.map(({ name }) => name))
  return [
    `Soak of ${soak.minutes} minutes, ${soak.machine}`,
    tableOf(
      ['requests', 'sent', 'failed for a fault', 'failed without one'],
      [...ledger.counts].map(([kind, count]) => {
        const countIn = (failures: readonly Failure[]): number =>
          failures.filter((failure) => failure.kind === kind).length
        const unexcused = countIn(ledger.unexcused)
        return [kind, count, countIn(ledger.failures) - unexcused, unexcused]
      }),
    ),
    `Turns: ${listOf([...ledger.cache])}. Faults: ${listOf([...faults])}.`,
    tableOf(
      ['process', 'resident MiB at start', 'at end', 'least of each quarter', 'handles at start', 'at end'],
      watched.map((each) => {
        const [first, last] = [each.samples.at(0), each.samples.at(-1)]
        const quarters = quartersText(each.samples.map(({ residentBytes }) => residentBytes))
        const resident = [first, last].map((sample) => mib(sample?.residentBytes ?? 0))
        return [each.name, ...resident, quarters, first?.handles ?? 0, last?.handles ?? 0]
      }),
    ),
    `In use by gateway 0 after a collection, least of each quarter: ${quartersText(inUse)} MiB; growth in the last ${(100 * growthOf(inUse)).toFixed(1)} %.`,
    `Left that nobody owns: ${leftovers.files.length} KV files, ${leftovers.keys.length} keys of Redis.`,
    ...[...leftovers.files, ...leftovers.keys].slice(0, 10),
    ...ledger.unexcused.slice(0, 10).map((failure) => failureLine(failure, ledger)),
  ].join('\n\n')
}

const countsOf = (names: readonly string[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

const listOf = (counts: readonly (readonly [string, number])[]): string =>
  counts.map(([name, count]) => `${name} ${count}`).join(', ')

const tableOf = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [
    `| ${head.join(' | ')} |`,
    `| --- | ${head
      .slice(1)
      .map(() => '---:')
      .join(' | ')} |`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n')

const mib = (bytes: number): string => (bytes / 1_048_576).toFixed(0)

const quartersText = (bytes: readonly number[]): string => leastOfQuarters(bytes).map(mib).join(' / ')

const failureLine = ({ kind, what, fromMs, untilMs }: Failure, { faults }: Ledger): string => {
  const last = faults.findLast((fault) => fault.fromMs <= fromMs)
  const since = last === undefined ? 'before any' : `${Math.round((fromMs - last.fromMs) / 1000)} s after: ${last.name}`
  return `failed without a fault (${since}): ${kind}, after ${Math.round(untilMs - fromMs)} ms: ${what}`
}
