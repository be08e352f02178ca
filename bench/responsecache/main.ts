/**
 * What a look-up in the response cache takes, against what a hit saves: requests through Envoy to the embedded engine, computed without the
 * cache, computed with it, and answered from it. Prints a table. Needs `npm run build` and a free port 9090; then
 * `npx tsc -p bench/tsconfig.json && node .run/bench/bench/responsecache/main.js`.
 */
import { randomUUID } from 'node:crypto'
import { type BenchStack, startBenchStack } from '../bench-stack.ts'
import { readOptions } from '../read-options.ts'
import { median } from '../statistics.ts'
import { lookUpMicroseconds } from './look-up.ts'

const values = readOptions('What an answer from the response cache takes, beside one from a pod.', {
  tokens: { value: 'N,…', meaning: 'lengths of the prompt', default: '20,200,2000' },
  runs: { value: 'N', meaning: 'requests of each kind', default: '15' },
})
const sizes = values.tokens.split(',').map(Number)
const runs = Number(values.runs)

process.env['CTX_RESPONSE_CACHE_MAX_BYTES'] = '100000000'
process.env['CTX_RESPONSE_CACHE_MODELS'] = 'tiny-random'

const bodyOf = (stack: BenchStack, tokens: number): string => {
  const { model, prompts } = stack.engine
  return JSON.stringify({ model, temperature: 0, max_tokens: 8, prompt: prompts.make(randomUUID(), tokens) })
}

const timed = async (stack: BenchStack, body: string, expected: 'hit' | 'miss' | null): Promise<number> => {
  const startedMs = performance.now()
  const response = await fetch(`${stack.url}/v1/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer bench',
      'content-type': 'application/json',
      ...(expected === null ? {} : { 'x-response-cache': 'on' }),
    },
    body,
  })
  await response.text()
  const endedMs = performance.now()
  const seen = response.headers.get('x-response-cache')
  if (response.status !== 200 || seen !== expected)
    throw new Error(`${response.status}, ${seen} in place of ${expected}`)
  return endedMs - startedMs
}

/** The three kinds of request take turns, so that a busy moment of the machine meets all of them. */
const measure = async (stack: BenchStack, tokens: number) => {
  const figures = { computed: [] as number[], miss: [] as number[], hit: [] as number[] }
  for (let run = -1; run < runs; run += 1) {
    const [plain, cached] = [bodyOf(stack, tokens), bodyOf(stack, tokens)]
    const round = {
      computed: await timed(stack, plain, null),
      miss: await timed(stack, cached, 'miss'),
      hit: await timed(stack, cached, 'hit'),
    }
    // First requests pay for connections and compilation.
    if (run < 0) continue
    figures.computed.push(round.computed)
    figures.miss.push(round.miss)
    figures.hit.push(round.hit)
  }
  return { computed: median(figures.computed), miss: median(figures.miss), hit: median(figures.hit) }
}

const stack = await startBenchStack('embedded')
try {
  const rows: string[] = []
  for (const tokens of sizes) {
    const { computed, miss, hit } = await measure(stack, tokens)
    const lookUp = (await lookUpMicroseconds(bodyOf(stack, tokens))) / 1000
    const saved = computed - hit
    const cells = [
      String(tokens),
      ...[computed, miss, hit, saved].map((ms) => `${ms.toFixed(1)} ms`),
      `${lookUp.toFixed(3)} ms`,
      `${((100 * lookUp) / saved).toFixed(2)} %`,
    ]
    rows.push(`| ${cells.join(' | ')} |`)
  }
  console.log(
    '| prompt tokens | computed | computed, looked up | hit | saved by a hit | look-up | share of the saving |',
  )
  console.log(`|${' ---: |'.repeat(7)}`)
  console.log(rows.join('\n'))
} finally {
  await stack.stop()
}
