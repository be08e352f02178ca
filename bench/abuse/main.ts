/**
 * For how long bytes of others hold the event loop, what clients see beside others that send bodies made to be slow, and
 * what memory a thousand clients take that send bodies as large as they may be. Prints tables and writes
 * bench/out/abuse.json. Run with `make bench-abuse`.
 */

import { setTimeout as pause } from 'node:timers/promises'
import { createChildren, type ManagedChild, startChild } from '../../playground/child-process.ts'
import { prints, waitUntilReady } from '../../playground/wait-until-ready.ts'
import { machineNow, machineText, say, writeFigures } from '../bench-process.ts'
import { createSessions } from '../gateway/create-sessions.ts'
import { usagesOf } from '../gateway/process-usage.ts'
import { type Wiring, wiringNames } from '../gateway/targets.ts'
import { listOf, readOptions } from '../read-options.ts'
import { markdownTable } from '../statistics.ts'
import type { AttackPlan } from './attack.ts'
import { kindNames } from './bodies.ts'
import { probe, type Seen } from './probe.ts'
import { measureReaders } from './readers.ts'
import { type Abused, startAbused } from './start-abused.ts'

const values = readOptions('What clients see beside bodies that are made to be slow, and what memory they take.', {
  seconds: { value: 'N', meaning: 'seconds of each measurement', default: '5' },
  wiring: { value: 'NAME,…', meaning: 'wirings to measure', default: wiringNames.join() },
  as: { value: 'NAME,…', meaning: 'what the bodies are sent as', default: 'create,turn,cached' },
  kinds: { value: 'NAME,…', meaning: 'kinds of bodies', default: kindNames.join() },
  bytes: { value: 'N', meaning: 'bytes of a body', default: '13500000' },
  connections: { value: 'N', meaning: 'connections that send them', default: '5' },
  seed: { value: 'N', meaning: 'from which the bodies are drawn', default: '1' },
  clients: {
    value: 'N',
    meaning: 'clients that send at the same time where memory is measured; 0: it is not',
    default: '1000',
  },
})

const mebibyte = 1024 * 1024
/** Of a client where memory is measured, which is `turns.maxBodyBytes` there, so that the bench and Envoy need no more. */
const clientBytes = mebibyte
/** What the gateway holds of all bodies (docs/limits.md). */
const promisedBytes = 128 * mebibyte

const wirings = wiringNames.filter((name) => listOf(values.wiring).includes(name))
const seconds = Number(values.seconds)
const seed = Number(values.seed)
const attacker = { authorization: 'Bearer attacker', 'content-type': 'application/json' }

/** Where bodies are sent, and with what headers beside the attacker's own. */
const targetOf = async (
  as: string,
  url: string,
): Promise<{ readonly url: string; readonly headers: Record<string, string> }> => {
  const inference = `${url}/v1/completions`
  if (as === 'create') return { url: `${url}/v1/context`, headers: { 'x-session-ttl': '60' } }
  if (as === 'cached') return { url: inference, headers: { 'x-response-cache': 'on' } }
  if (as !== 'turn') throw new Error('--as must be create, turn, cached')
  const body = JSON.stringify({ model: 'bench', prompt: 'x' })
  const created = await fetch(`${url}/v1/context`, { method: 'POST', headers: attacker, body })
  await created.arrayBuffer()
  return { url: inference, headers: { 'x-session-id': created.headers.get('x-session-id') ?? '' } }
}

const startAttack = async (plan: AttackPlan): Promise<ManagedChild> => {
  const program = new URL('./attack.ts', import.meta.url).pathname
  const child = await startChild({
    name: 'attack',
    command: [process.execPath, program, JSON.stringify(plan)],
    children,
  })
  await waitUntilReady(child, prints(/ready/))
  return child
}

const answersOf = (attack: ManagedChild): string => {
  const line = attack.output().find((each) => each.startsWith('{')) ?? '{}'
  const answers = Object.entries<number>(JSON.parse(line))
  return answers.map(([status, count]) => `${count} × ${status}`).join(', ')
}

interface Row {
  readonly wiring: Wiring
  readonly as: string
  readonly kind: string
  readonly seen: Seen
  readonly answers: string
}

const measureBeside = async (
  abused: Abused,
  sessionId: string,
  wiring: Wiring,
  as: string,
): Promise<readonly Row[]> => {
  const rows: Row[] = [{ wiring, as, kind: 'idle', seen: await probe(abused, sessionId, seconds), answers: '' }]
  const target = await targetOf(as, abused.url)
  for (const kind of listOf(values.kinds)) {
    say(`${wiring}, as ${as}: ${kind}`)
    const attack = await startAttack({
      url: target.url,
      headers: { ...attacker, ...target.headers },
      kind,
      seed,
      bytes: Number(values.bytes),
      connections: Number(values.connections),
    })
    await pause(1000)
    const seen = await probe(abused, sessionId, seconds)
    await attack.stop({ graceMs: 30_000 })
    rows.push({ wiring, as, kind, seen, answers: answersOf(attack) })
  }
  return rows
}

const latencyTable = (rows: readonly Row[]): string => {
  const idle = rows[0]?.seen
  const plain = rows.find(({ kind }) => kind === 'plain')?.seen
  const ms = (value: number): string => value.toFixed(1)
  const ratio = (value: number, to: number | undefined): string => (to === undefined ? '–' : (value / to).toFixed(2))
  return markdownTable(
    [
      'bodies',
      'GET p50, ms',
      'GET p90',
      'above idle',
      'turn p50, ms',
      'turn p90',
      'to idle',
      'to plain',
      'longest delay, ms',
      'answers',
    ],
    rows.map(({ kind, seen: { get, turn, longestDelayMs, failures }, answers }) => [
      kind,
      ms(get.p50),
      ms(get.p90),
      ms(get.p90 - (idle?.get.p90 ?? Number.NaN)),
      ms(turn.p50),
      ms(turn.p90),
      ratio(turn.p90, idle?.turn.p90),
      ratio(turn.p90, plain?.turn.p90),
      ms(longestDelayMs),
      failures === 0 ? answers : `${answers}; ${failures} of others failed`,
    ]),
  )
}

/** The gateway's resident memory before, and its peak, while all clients send one body each. */
const measureMemory = async (wiring: Wiring, as: string, kind: string) => {
  const abused = await startAbused({ children, wiring, env: { CTX_TURNS_MAX_BODY_BYTES: String(clientBytes) } })
  const residentBytes = async () => (await usagesOf({ plugin: abused.pid })).plugin.residentBytes
  const before = await residentBytes()
  const target = await targetOf(as, abused.url)
  const attack = await startAttack({
    url: target.url,
    headers: { ...attacker, ...target.headers },
    kind,
    seed,
    bytes: clientBytes - 1024,
    connections: Number(values.clients),
    times: 1,
  })
  let peak = before
  while (attack.isRunning()) {
    peak = Math.max(peak, await residentBytes())
    await pause(20)
  }
  await attack.exited
  const stillServes = (await fetch(`${abused.adminUrl}/healthz`)).ok
  const rows = { wiring, as, kind, before, peak, stillServes, answers: answersOf(attack) }
  await children.stop()
  return rows
}

const children = createChildren()
const machine = machineNow()
const readers = measureReaders(seed, Number(values.bytes))
const tables = [
  'longest time without anything else, by reader and its worst input',
  markdownTable(
    ['reader', 'input', 'ms'],
    readers.map(({ name, kind, ms }) => [name, kind, ms.toFixed(1)]),
  ),
]
const beside: Row[] = []
for (const wiring of wirings) {
  const env = { CTX_RESPONSE_CACHE_MODELS: 'bench', CTX_RESPONSE_CACHE_MAX_BYTES: '64MiB' }
  const abused = await startAbused({ children, wiring, env })
  const [sessionId = ''] = await createSessions(abused.url, 1)
  for (const as of listOf(values.as)) {
    const rows = await measureBeside(abused, sessionId, wiring, as)
    beside.push(...rows)
    tables.push(`${wiring}, as ${as}`, latencyTable(rows))
  }
  await children.stop()
}
const memory = []
if (Number(values.clients) > 0) {
  for (const wiring of wirings) {
    for (const [as, kind] of [
      ['create', 'plain'],
      ['create', 'blanks'],
      ['turn', 'blanks'],
    ] as const) {
      say(`${wiring}: memory, as ${as}, ${kind}`)
      memory.push(await measureMemory(wiring, as, kind))
    }
  }
  const mib = (bytes: number): string => (bytes / mebibyte).toFixed(0)
  tables.push(
    `memory of the gateway while ${values.clients} clients send ${mib(clientBytes)} MiB each; it promises to hold ${mib(promisedBytes)} MiB of bodies`,
    markdownTable(
      ['wiring', 'as', 'bodies', 'before, MiB', 'peak, MiB', 'more, MiB', 'answers'],
      memory.map(({ wiring, as, kind, before, peak, answers }) => [
        wiring,
        as,
        kind,
        mib(before),
        mib(peak),
        mib(peak - before),
        answers,
      ]),
    ),
  )
}
process.stdout.write(
  `${[`${values.connections} connections that send ${values.bytes} bytes, ${machineText(machine)}`, ...tables].join('\n\n')}\n`,
)
await writeFigures('abuse.json', { machine, options: values, readers, beside, memory })
