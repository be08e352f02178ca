/**
 * Time to first token with and without the session's KV, through everything that `make run` starts.
 * Prints two tables and writes bench/out/ttft.json, or ttft-vllm.json, and a chart of both, bench/out/ttft.svg. Run with `make bench-ttft`, or
 * `make bench-ttft ENGINE=vllm`.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { packageRoot } from '../playground/paths.ts'
import { type BenchStack, type EngineName, engineNames, startBenchStack } from './bench-stack.ts'
import { measureConversation } from './conversation.ts'
import { measureRun, type RunFigures } from './measure-run.ts'
import { readOptions } from './read-options.ts'
import { median, spread } from './statistics.ts'
import { renderTtftChart } from './ttft-chart.ts'

const values = readOptions(
  'Time to first token of a conversation whose KV is in the pod, is loaded, or is computed again.',
  {
    runs: { value: 'N', meaning: 'requests of each kind; 0 only draws the chart of earlier figures', default: '5' },
    tokens: { value: 'N,…', meaning: 'lengths of the conversation', default: '500,1000,2000,3000' },
    engine: { value: 'NAME', meaning: engineNames.join(' or '), default: 'embedded' },
  },
)
const runs = Number(values.runs)
const sizes = values.tokens.split(',').map(Number)
const engineName = engineNames.find((name) => name === values.engine)
if (engineName === undefined) throw new Error(`--engine must be one of ${engineNames.join(', ')}`)

/** A fleet that is already running may know the prompts of another run. */
const unique = randomUUID()
const directory = join(packageRoot(), 'bench/out')
const figuresFiles: Readonly<Record<EngineName, string>> = { embedded: 'ttft.json', vllm: 'ttft-vllm.json' }

const cases = ['cold', 'samePod', 'otherPodLoaded', 'otherPodNotLoaded'] as const
type Case = (typeof cases)[number]
const titles: Readonly<Record<Case, string>> = {
  cold: 'cold',
  samePod: 'same pod',
  otherPodLoaded: 'other pod, KV loaded',
  otherPodNotLoaded: 'other pod, not loaded',
}

const measureAll = async (stack: BenchStack): Promise<ReadonlyMap<number, readonly RunFigures[]>> => {
  const figures = new Map<number, RunFigures[]>(sizes.map((size) => [size, []]))
  // One round that does not count: first requests open connections and compile code.
  await measureRun(stack, { tokens: 300, seed: `${unique} warm-up` })
  for (let run = 1; run <= runs; run += 1) {
    for (const tokens of sizes) {
      figures.get(tokens)?.push(await measureRun(stack, { tokens, seed: `${unique} ${run} ${tokens}` }))
      process.stderr.write(`run ${run} of ${runs}: ${tokens} tokens\n`)
    }
  }
  return figures
}

const rowOf = (tokens: number, measured: readonly RunFigures[]) => {
  const ofCase = (name: Case) => measured.map((figure) => figure[name])
  const medianMs = Object.fromEntries(cases.map((name) => [name, median(ofCase(name))])) as Record<Case, number>
  return {
    tokens,
    medianMs,
    spreadMs: Object.fromEntries(cases.map((name) => [name, spread(ofCase(name))])),
    loadedToCold: medianMs.otherPodLoaded / medianMs.cold,
    loadedToSamePod: medianMs.otherPodLoaded / medianMs.samePod,
    cachedTokens: median(measured.map((figure) => figure.cachedTokens)),
  }
}

const measure = async (engine: EngineName): Promise<void> => {
  const stack = await startBenchStack(engine)
  try {
    const rows = [...(await measureAll(stack))].map(([tokens, measured]) => rowOf(tokens, measured))
    const table = [
      `| prompt tokens | ${cases.map((name) => titles[name]).join(' | ')} | loaded / cold | loaded / same pod |`,
      `| ---: |${' ---: |'.repeat(cases.length + 2)}`,
      ...rows.map(
        (row) =>
          `| ${row.tokens} | ${cases.map((name) => `${row.medianMs[name].toFixed(0)} ms`).join(' | ')} | ${row.loadedToCold.toFixed(3)} | ${row.loadedToSamePod.toFixed(2)} |`,
      ),
    ]
    const conversation = await measureConversation(stack, `${unique} conversation`)
    const turnTable = [
      '| turn | TTFT | cold | ratio | reused tokens | x-context-cache |',
      '| ---: | ---: | ---: | ---: | ---: | --- |',
      ...conversation.map(
        ({ turn, ttftMs, coldTtftMs, cachedTokens, cache }) =>
          `| ${turn} | ${ttftMs.toFixed(0)} ms | ${coldTtftMs.toFixed(0)} ms | ${(ttftMs / coldTtftMs).toFixed(3)} | ${cachedTokens} | \`${cache}\` |`,
      ),
    ]
    process.stdout.write(
      `Time to first token, median of ${runs} runs, ${stack.engine.title} on ${cpus().length} processors\n\n${table.join('\n')}\n\n` +
        `A conversation that changes pods with every turn\n\n${turnTable.join('\n')}\n`,
    )
    const figures = { engine: stack.engine.title, runs, processors: cpus().length, rows, conversation }
    await writeFile(join(directory, figuresFiles[engine]), `${JSON.stringify(figures, null, 2)}\n`)
  } finally {
    await stack.stop()
  }
}

const ms = z.number()
const figuresForm = z.object({
  engine: z.string(),
  rows: z.array(z.object({ tokens: z.number(), medianMs: z.object({ cold: ms, samePod: ms, otherPodLoaded: ms }) })),
})

/** Draws the latest figures of each engine that was measured. */
const drawChart = async (): Promise<void> => {
  const texts = await Promise.all(
    engineNames.map((name) => readFile(join(directory, figuresFiles[name]), 'utf8').catch(() => undefined)),
  )
  const panels = texts
    .filter((text) => text !== undefined)
    .map((text) => figuresForm.parse(JSON.parse(text)))
    .map(({ engine, rows }) => ({ title: engine, rows }))
  const file = join(directory, 'ttft.svg')
  await writeFile(file, renderTtftChart(panels))
  process.stdout.write(`\n${file}\n`)
}

await mkdir(directory, { recursive: true })
if (runs > 0) await measure(engineName)
await drawChart()
