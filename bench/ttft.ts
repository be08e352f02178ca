/**
 * Time to first token with and without the session's KV, through everything that `make run` starts.
 * Prints two tables and writes bench/out/ttft.json, or ttft-vllm.json. Run with `make bench-ttft`, or `make bench-ttft ENGINE=vllm`.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../playground/paths.ts'
import { type BenchStack, engineNames, startBenchStack } from './bench-stack.ts'
import { measureConversation } from './conversation.ts'
import { measureRun, type RunFigures } from './measure-run.ts'
import { readOptions } from './read-options.ts'
import { median, spread } from './statistics.ts'

const values = readOptions(
  'Time to first token of a conversation whose KV is at hand, is loaded, or is computed anew.',
  {
    runs: { value: 'N', meaning: 'requests of each kind', default: '5' },
    tokens: { value: 'N,…', meaning: 'lengths of the conversation', default: '500,1000,2000,3000' },
    engine: { value: 'NAME', meaning: engineNames.join(' or '), default: 'embedded' },
  },
)
const runs = Number(values.runs)
const sizes = values.tokens.split(',').map(Number)
const engineName = engineNames.find((name) => name === values.engine)
if (engineName === undefined) throw new Error(`--engine must be one of ${engineNames.join(', ')}`)

/** A fleet that ran before may know the prompts of another run. */
const unique = randomUUID()

const cases = ['cold', 'samePod', 'otherPodLoaded', 'otherPodNotLoaded'] as const
const titles: Readonly<Record<(typeof cases)[number], string>> = {
  cold: 'cold',
  samePod: 'same pod',
  otherPodLoaded: 'other pod, KV loaded',
  otherPodNotLoaded: 'other pod, not loaded',
}

const measureAll = async (stack: BenchStack): Promise<ReadonlyMap<number, readonly RunFigures[]>> => {
  const figures = new Map<number, RunFigures[]>(sizes.map((size) => [size, []]))
  // One round that does not count: first requests pay for connections and compilation.
  await measureRun(stack, { tokens: 300, seed: `${unique} warm-up` })
  for (let run = 1; run <= runs; run += 1) {
    for (const tokens of sizes) {
      figures.get(tokens)?.push(await measureRun(stack, { tokens, seed: `${unique} ${run} ${tokens}` }))
      process.stderr.write(`run ${run} of ${runs}: ${tokens} tokens\n`)
    }
  }
  return figures
}

const stack = await startBenchStack(engineName)
try {
  const figures = await measureAll(stack)
  const rows = [...figures].map(([tokens, measured]) => {
    const ofCase = (name: (typeof cases)[number]) => measured.map((figure) => figure[name])
    const medians = Object.fromEntries(cases.map((name) => [name, median(ofCase(name))])) as Record<
      (typeof cases)[number],
      number
    >
    return {
      tokens,
      medianMs: medians,
      spreadMs: Object.fromEntries(cases.map((name) => [name, spread(ofCase(name))])),
      loadedToCold: medians.otherPodLoaded / medians.cold,
      loadedToSamePod: medians.otherPodLoaded / medians.samePod,
      cachedTokens: median(measured.map((figure) => figure.cachedTokens)),
    }
  })
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
  const directory = join(packageRoot(), 'bench/out')
  await mkdir(directory, { recursive: true })
  await writeFile(
    join(directory, engineName === 'embedded' ? 'ttft.json' : `ttft-${engineName}.json`),
    `${JSON.stringify({ engine: stack.engine.title, runs, processors: cpus().length, rows, conversation }, null, 2)}\n`,
  )
} finally {
  await stack.stop()
}
