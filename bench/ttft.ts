/**
 * Time to first token with and without the session's KV, through everything that `make run` starts. Prints two tables
 * and writes bench/out/ttft.json, or ttft-vllm.json, and a chart of both, bench/out/ttft.svg. Run with
 * `make bench-ttft`, or `make bench-ttft ENGINE=vllm`.
 */
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { z } from 'zod'
import { outputFile, say, writeFigures } from './bench-process.ts'
import { type BenchStack, type EngineName, engineNames, startBenchStack } from './bench-stack.ts'
import { measureResponses } from './measure-responses.ts'
import { measureConversation, measureRun, type RunFigures } from './measure-ttft.ts'
import { listOf, readOptions } from './read-options.ts'
import { markdownTable, median, spread } from './statistics.ts'
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
const sizes = listOf(values.tokens).map(Number)
const engineName = engineNames.find((name) => name === values.engine)
if (engineName === undefined) throw new Error(`--engine must be one of ${engineNames.join(', ')}`)

/** A fleet that is already running may know the prompts of another run. */
const unique = randomUUID()
const figuresFiles: Readonly<Record<EngineName, string>> = { embedded: 'ttft.json', vllm: 'ttft-vllm.json' }

const titles = {
  cold: 'cold',
  samePod: 'same pod',
  otherPodLoaded: 'other pod, KV loaded',
  otherPodNotLoaded: 'other pod, not loaded',
}
type Case = keyof typeof titles
const cases = Object.keys(titles) as readonly Case[]

const measureRuns = async (stack: BenchStack): Promise<ReadonlyMap<number, readonly RunFigures[]>> => {
  const figures = new Map<number, RunFigures[]>(sizes.map((size) => [size, []]))
  // One round that does not count: first requests open connections and compile code.
  await measureRun(stack, { tokens: 300, seed: `${unique} warm-up` })
  for (let run = 1; run <= runs; run += 1) {
    for (const tokens of sizes) {
      figures.get(tokens)?.push(await measureRun(stack, { tokens, seed: `${unique} ${run} ${tokens}` }))
      say(`run ${run} of ${runs}: ${tokens} tokens`)
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

const msText = (value: number): string => `${value.toFixed(0)} ms`

const measure = async (stack: BenchStack, file: string): Promise<void> => {
  const rows = [...(await measureRuns(stack))].map(([tokens, measured]) => rowOf(tokens, measured))
  const conversation = await measureConversation(stack, `${unique} conversation`)
  const responses = await measureResponses(stack, `${unique} responses`)
  const later = responses.slice(1)
  const medianOf = (kind: 'bySession' | 'byPrevious') => median(later.map((turn) => turn[kind].ttftMs))
  const previousToSession = medianOf('byPrevious') / medianOf('bySession')
  const { title: engine } = stack.engine
  const processors = cpus().length
  process.stdout.write(
    [
      `Time to first token, median of ${runs} runs, ${engine} on ${processors} processors`,
      markdownTable(
        ['prompt tokens', ...Object.values(titles), 'loaded / cold', 'loaded / same pod'],
        rows.map(({ tokens, medianMs, loadedToCold, loadedToSamePod }) => [
          String(tokens),
          ...cases.map((name) => msText(medianMs[name])),
          loadedToCold.toFixed(3),
          loadedToSamePod.toFixed(2),
        ]),
      ),
      'A conversation that changes pods with every turn',
      markdownTable(
        ['turn', 'TTFT', 'cold', 'ratio', 'reused tokens', 'x-context-cache'],
        conversation.map(({ turn, ttftMs, coldTtftMs, cachedTokens, cache }) => {
          const ratio = (ttftMs / coldTtftMs).toFixed(3)
          return [String(turn), msText(ttftMs), msText(coldTtftMs), ratio, String(cachedTokens), `\`${cache}\``]
        }),
      ),
      'A conversation on /v1/responses that changes pods with every turn, by a session and by previous_response_id',
      markdownTable(
        ['turn', 'TTFT by session', 'bytes sent', 'TTFT by previous_response_id', 'bytes sent', 'reused tokens'],
        responses.map(({ turn, bySession, byPrevious }) => [
          String(turn),
          msText(bySession.ttftMs),
          String(bySession.sentBytes),
          msText(byPrevious.ttftMs),
          String(byPrevious.sentBytes),
          String(byPrevious.cachedTokens),
        ]),
      ),
      `Median of the turns after the first, by previous_response_id / by session: ${previousToSession.toFixed(2)}`,
      '',
    ].join('\n\n'),
  )
  await writeFigures(file, { engine, runs, processors, rows, conversation, responses, previousToSession })
}

const ms = z.number()
const figuresForm = z.object({
  engine: z.string(),
  rows: z.array(z.object({ tokens: z.number(), medianMs: z.object({ cold: ms, samePod: ms, otherPodLoaded: ms }) })),
})

/** Draws the latest figures of each engine that was measured. */
const drawChart = async (): Promise<void> => {
  const files = await Promise.all(engineNames.map((name) => outputFile(figuresFiles[name])))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => undefined)))
  const figures = texts.filter((text) => text !== undefined).map((text) => figuresForm.parse(JSON.parse(text)))
  const chart = await outputFile('ttft.svg')
  await writeFile(chart, renderTtftChart(figures.map(({ engine, rows }) => ({ title: engine, rows }))))
  process.stdout.write(`${chart}\n`)
}

if (runs > 0) {
  const stack = await startBenchStack(engineName)
  await measure(stack, figuresFiles[engineName]).finally(() => stack.stop())
}
await drawChart()
