/**
 * Sessions in a cluster of three primaries with a replica each, while primaries die, freeze and are cut off, slots move and
 * a node is added, for 60 s. Prints what it came to, and ends with 1 where something was wrong.
 */
import { startTestRedisCluster } from '../../test/support/redis-cluster/start-test-redis-cluster.ts'
import { type FaultName, faultNames } from '../../test/support/store-chaos/chaos-faults.ts'
import type { ChaosLedger } from '../../test/support/store-chaos/chaos-ledger.ts'
import { type ChaosOutcome, runChaos } from '../../test/support/store-chaos/run-chaos.ts'
import { machineNow, machineText, say } from '../bench-process.ts'
import { readOptions } from '../read-options.ts'

const options = readOptions('Sessions in a cluster whose nodes fail.', {
  seconds: { value: 'N', meaning: 'how long', default: '60' },
  seed: { value: 'N', meaning: 'chooses what clients do', default: String(Date.now() % 1_000_000) },
})
/** From the begin of each fault to the last call that it failed. */
const awayText = ({ failures, periods }: ChaosLedger, fault: FaultName): string => {
  const lasts = periods
    .filter(({ name }) => name === fault)
    .map((period) =>
      Math.max(0, ...failures.filter((failure) => failure.period === period).map(({ afterMs }) => afterMs)),
    )
  const [least, most] = [Math.min(...lasts), Math.max(...lasts)].map((ms) => (ms / 1_000).toFixed(1))
  const failed = failures.filter(({ period }) => period.name === fault).length
  return `${lasts.length} ${fault}: ${failed} calls failed, until ${least} to ${most} s after its begin`
}

/** What sessions.commandTimeoutMs is by default. */
const commandTimeoutMs = 250

const faultsFor = function* (seconds: number): Generator<FaultName> {
  const endMs = performance.now() + seconds * 1_000
  yield 'add a node'
  const all: readonly FaultName[] = ['kill', 'freeze', 'cut', 'move a slot']
  while (true) {
    for (const fault of all.toSorted(() => Math.random() - 0.5)) {
      if (performance.now() >= endMs) return
      yield fault
    }
  }
}

const numbered = (items: readonly string[]): string => {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts.size === 0 ? 'none' : [...counts].map(([item, count]) => `${count} ${item}`).join(', ')
}

const report = ({ ledger, ...outcome }: ChaosOutcome): string => {
  const turns = ledger.sessions.reduce((sum, { countedTurns }) => sum + countedTurns, 0)
  return [
    `calls: ${Object.entries(ledger.counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}`,
    ...faultNames.flatMap((name) =>
      ledger.periods.some((period) => period.name === name) ? [awayText(ledger, name)] : [],
    ),
    `failed in partitions that no fault touched: ${numbered(ledger.unexcused.map(({ operation, period, reason }) => `${operation} while ${period.name} (${reason})`))}`,
    `failed in other partitions whose server let a plain client wait, too: ${ledger.untouched.length - ledger.unexcused.length}`,
    `faults during which another server was replaced, too: ${ledger.periods.filter(({ isSpread }) => isSpread).length}`,
    `longest call: ${Math.round(ledger.longestMs)} ms, with a time limit of ${commandTimeoutMs} ms a command`,
    `sessions ${ledger.sessions.length}, turns counted ${turns}, lost by replication lag: ${outcome.lostTurns} turns, ${ledger.undeleted.size} deletions, ${outcome.orphans} announced artefacts`,
    `artefacts announced ${ledger.artefacts.size}, removed ${ledger.claimed.size}, stuck ${outcome.stuckArtefacts.length}, announced for sure and lost ${outcome.lostAnnouncements.length}`,
    `keys left: ${outcome.leftKeys.length === 0 ? 'none' : outcome.leftKeys.join(' ')}`,
    `wrong: ${numbered(ledger.violations)}`,
  ].join('\n')
}

const run = async (): Promise<boolean> => {
  const machine = machineNow()
  const cluster = await startTestRedisCluster()
  try {
    const [seconds, seed] = [Number(options.seconds), Number(options.seed)]
    const outcome = await runChaos({ cluster, faults: faultsFor(seconds), seed, commandTimeoutMs, say })
    process.stdout.write(
      `Cluster chaos of ${seconds} seconds, seed ${seed}, ${machineText(machine)}\n${report(outcome)}\n`,
    )
    const { ledger, stuckArtefacts, lostAnnouncements, leftKeys } = outcome
    const wrong = [ledger.violations, ledger.unexcused, stuckArtefacts, lostAnnouncements, leftKeys]
    return wrong.every((each) => each.length === 0)
  } finally {
    await cluster.close()
  }
}

process.exitCode = (await run()) ? 0 : 1
