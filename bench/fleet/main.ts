/**
 * What a fleet of conversations gets with requests in turn, by a hash, and with sessions of the gateway. Prints a table
 * and writes bench/out/fleet-<engine>.json and a chart of all engines, bench/out/fleet.svg. Run with `make bench-fleet`; `--help` lists the options.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChildren } from '../../playground/child-process.ts'
import { obtainVllmFleet, type RunningVllmFleet } from '../../playground/vllm/start-vllm-fleet.ts'
import { machineNow, machineText, say, writeFigures } from '../bench-process.ts'
import { createAgentTurns } from './agent-turns.ts'
import { createCompletionTurns } from './completion-turns.ts'
import { wayFigures } from './figures.ts'
import { drawFleetChart } from './fleet-chart.ts'
import { type FleetOptions, readFleetOptions } from './fleet-options.ts'
import { measureWay } from './measure-way.ts'
import { fleetTable, type WayResult } from './report.ts'
import { startFleet, vllmFleet } from './start-fleet.ts'
import { startFleetGateway } from './start-fleet-gateway.ts'
import { startRingHash } from './start-ring-hash.ts'
import { storm } from './storms.ts'
import { busiestPod, createWay, type WayName } from './ways.ts'
import { planConversations } from './workload.ts'
import { writeTrace } from './write-trace.ts'

const options = readFleetOptions()
const { workload } = options
const unique = randomUUID()
const folder = mkdtempSync(join(tmpdir(), 'bench-fleet-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
// An exit ends what runs and removes the folder; a signal alone would not.
for (const [signal, status] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const]) {
  process.once(signal, () => process.exit(status))
}

const measure = async (way: WayName, running: RunningVllmFleet | undefined): Promise<WayResult> => {
  const children = createChildren()
  const ownFolder = join(folder, way)
  await mkdir(ownFolder)
  try {
    say(`${way}: starting`)
    const fleet = running
      ? vllmFleet(running, options)
      : await startFleet(options, { way, children, folder: ownFolder })
    const { pods, model, vocabulary } = fleet
    const common = { children, folder: ownFolder, usesRedis: options.usesRedis }
    const gateway = way === 'gateway' ? await startFleetGateway(fleet, common) : undefined
    const pod = busiestPod(
      planConversations(workload).map(({ name }) => name),
      pods.length,
    )
    // Pods that outlive a way hold the prompts of the one before.
    const of = { workload, vocabulary, model, promptSeed: `${unique} ${way}`, scale: options.scale }
    const targets = { pods, gatewayUrl: gateway?.url, model, outputTokens: workload.outputTokens }
    const run = await measureWay({
      name: way,
      workload,
      send:
        options.shape === 'agents'
          ? createAgentTurns(gateway?.url ?? (await startRingHash(children, pods)), of)
          : createCompletionTurns(createWay(way, targets), of),
      storm: () => storm(options.storm, { fleet, pod, gateway }),
    })
    return { way, run, figures: wayFigures(run) }
  } finally {
    await children.stop()
  }
}

const startVllm = ({ pods, kvBlocks }: FleetOptions): Promise<RunningVllmFleet> => {
  const flags = kvBlocks === undefined ? {} : { 'num-gpu-blocks-override': kvBlocks }
  return obtainVllmFleet({ env: process.env, onLine: say, pods: Array.from({ length: pods }, () => flags) })
}

const measureAll = async ({ engine, ways }: FleetOptions): Promise<readonly WayResult[]> => {
  const running = engine === 'vllm' ? await startVllm(options) : undefined
  try {
    const results: WayResult[] = []
    for (const way of ways) results.push(await measure(way, running))
    return results
  } finally {
    await running?.stop()
  }
}

const machine = machineNow()
const results = await measureAll(options)
const { conversations, turns, firstTokens, pauseMs } = workload
const size = options.shape === 'agents' ? `agents of ${options.scale} of their size` : `${firstTokens} tokens at first`
const load = `${conversations} conversations of ${turns} turns, ${size}, pauses of ${pauseMs / 1000} s`
const pods = options.engine === 'vllm' ? '' : `, ${options.pods} pods of ${options.slots} slots`
const failures = results.flatMap(({ way, run }) => {
  const failed = run.turns.find(({ failure }) => failure !== undefined)?.failure
  return [
    ...(failed === undefined ? [] : [`${way}: the first failure: ${failed}`]),
    ...(run.stormFailure === undefined ? [] : [`${way}: the storm failed: ${run.stormFailure}`]),
  ]
})
process.stdout.write(
  [
    `${options.engine}${pods}, ${load}, storm: ${options.storm}, ${machineText(machine)}`,
    fleetTable(results, options.storm !== 'none'),
    ...failures,
    '',
  ].join('\n\n'),
)
const isOfAgents = options.shape === 'agents'
await writeFigures(`fleet-${isOfAgents ? 'agents-' : ''}${options.engine}.json`, {
  machine: { ...machine, loadAverageAfter: machineNow().loadAverage },
  ...options,
  results: results.map(({ way, run, figures }) => ({ way, figures, ...run })),
})
if (!isOfAgents) process.stdout.write(`${await drawFleetChart()}\n`)
const [measured] = results
if (options.traceFile !== undefined && measured !== undefined)
  await writeTrace(options.traceFile, measured.run.turns, workload.outputTokens)
