/** `make bench-pods`: what a fleet of many pods costs a gateway: to choose one of them, and to watch each. */

import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { createGatewayParts } from '../playground/replay/gateway-parts.ts'
import { parseReplayOptions } from '../playground/replay/replay-options.ts'
import { createSeededRandom } from '../playground/replay/seeded-random.ts'
import { createPodProbe } from '../src/routing/pod-probe.ts'
import { machineNow, machineText, say, writeFigures } from './bench-process.ts'
import { readOptions } from './read-options.ts'
import { markdownTable, median } from './statistics.ts'

/** As long as the metrics of a vLLM with one model: histograms of times and lengths, mostly. */
const metricsText = [
  'vllm:num_requests_running{model_name="m"} 3.0',
  'vllm:num_requests_waiting{model_name="m"} 0.0',
  'vllm:kv_cache_usage_perc{model_name="m"} 0.4',
  ...Array.from({ length: 600 }, (_, index) => `vllm:some_seconds_bucket{le="${index}.0",model_name="m"} ${index}.0`),
].join('\n')

const serveEngine = (): void => {
  const server = createServer((request, response) => {
    if (request.url === '/metrics') response.end(metricsText)
    else if (request.url === '/v1/models') response.end('{"object":"list","data":[{"id":"m","object":"model"}]}')
    else response.end('{}')
  })
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage(server.address()))
}

const routesPerSize = 2_000

/** Microseconds to choose a pod, of a turn whose session is known to one of them. */
const routeMicroseconds = (pods: number): number => {
  const { settings } = parseReplayOptions(['no trace', '--pods', String(pods)])
  const nowMs = () => performance.now()
  const parts = createGatewayParts({ settings, policy: 'predicted-ttft', nowMs, random: createSeededRandom() })
  const times: number[] = []
  for (let turn = 0; turn < routesPerSize; turn += 1) {
    const pod = parts.addresses[turn % pods] ?? ''
    const startedMs = performance.now()
    const outcome = parts.router.route(
      {
        affinityKey: `session-${turn}`,
        lastPod: pod,
        model: 'model',
        promptTokens: 8_000,
        residentTokens: new Map([[pod, 7_000]]),
      },
      undefined,
    )
    times.push((performance.now() - startedMs) * 1000)
    if (outcome.kind !== 'routed') throw new Error('there is no pod')
  }
  return median(times.slice(routesPerSize / 2))
}

/** Microseconds of this thread's processor for a check of a pod: its health, its metrics, its models. */
const checkMicroseconds = async (checks: number): Promise<number> => {
  const worker = new Worker(new URL(import.meta.url))
  const { port } = await new Promise<{ readonly port: number }>((resolve) => worker.once('message', resolve))
  const probe = createPodProbe({ deadlineMs: 5_000 })
  const check = () => probe.probe(`127.0.0.1:${port}`, new AbortController().signal)
  for (let count = 0; count < checks / 4; count += 1) await check()
  const before = process.threadCpuUsage()
  for (let count = 0; count < checks; count += 1) {
    await Promise.all([check(), check(), check(), check()])
    await delay(1)
  }
  const { user, system } = process.threadCpuUsage(before)
  await probe.close()
  await worker.terminate()
  return (user + system) / (checks * 4)
}

const main = async (): Promise<void> => {
  const values = readOptions('What a fleet of many pods costs a gateway.', {
    pods: { value: 'N,…', meaning: 'numbers of pods', default: '10,100,1000' },
    checks: { value: 'N', meaning: 'checks of pods, four at a time', default: '500' },
  })
  const machine = machineNow()
  const sizes = values.pods.split(',').map(Number)
  say('choosing pods')
  routeMicroseconds(10)
  const routes = sizes.map((pods) => ({ pods, microseconds: routeMicroseconds(pods) }))
  say('checking pods')
  const check = await checkMicroseconds(Number(values.checks))
  process.stdout.write(
    [
      machineText(machine),
      markdownTable(
        ['pods', 'to choose one, µs', 'to watch all, share of a core'],
        routes.map(({ pods, microseconds }) => [
          pods.toLocaleString('en'),
          microseconds.toFixed(0),
          ((pods * check) / 1e6).toFixed(3),
        ]),
      ),
      `A check of a pod, once a second, takes ${check.toFixed(0)} µs of the gateway's thread (metrics of ${metricsText.length} bytes).`,
      '',
    ].join('\n\n'),
  )
  await writeFigures('pods.json', { machine, routes, checkMicroseconds: check })
}

if (isMainThread) await main()
else serveEngine()
