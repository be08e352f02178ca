import { setTimeout as delay } from 'node:timers/promises'
import { say } from '../bench-process.ts'
import type { FaultWindow, Ledger, RequestKind } from './ledger.ts'
import type { SoakProcess, SoakStack } from './soak-stack.ts'

interface Fault {
  readonly name: string
  /** Requests that need what is away. */
  readonly excuses: readonly RequestKind[]
  run(): Promise<void>
}

const awayMs = 1_000
const frozenMs = 3_000
/** After a part is back: Envoy and the gateways check their peers once a second or two. */
const recoveryMs = 5_000
const pauseMs = { least: 3_000, most: 9_000 }

/**
 * Faults one after the other until `until`, in a random order. Turns are answered through all of them but for those that
 * their pod took along. Gateway 0 is frozen, never killed: its memory is that of the whole soak.
 */
export const causeFaults = async (stack: SoakStack, ledger: Ledger, until: AbortSignal): Promise<void> => {
  const all = faultsOf(stack)
  let order: Fault[] = []
  while (!until.aborted) {
    if (order.length === 0) order = all.toSorted(() => Math.random() - 0.5)
    const fault = order.pop()
    if (fault === undefined) return
    const window: FaultWindow = { ...fault, fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY }
    ledger.faults.push(window)
    say(`fault: ${fault.name}`)
    await fault.run()
    window.untilMs = performance.now() + recoveryMs
    const restMs = recoveryMs + pauseMs.least + Math.random() * (pauseMs.most - pauseMs.least)
    await delay(restMs, undefined, { signal: until }).catch(() => undefined)
  }
}

const faultsOf = ({ gateways, pods, redis }: SoakStack): readonly Fault[] => {
  const [first, second] = gateways
  const pod = (): SoakProcess => pods[Math.floor(Math.random() * pods.length)] ?? redis
  return [
    { name: 'gateway killed', excuses: ['create', 'manage'], run: () => killAndStart(second) },
    { name: 'gateway restarted', excuses: [], run: () => restart(second) },
    { name: 'gateway frozen', excuses: ['create', 'manage'], run: () => freeze(first) },
    // What its pod computes goes with it; Envoy tries a request that has not begun to be answered again.
    { name: 'pod killed', excuses: ['turn', 'create', 'plain'], run: () => killAndStart(pod()) },
    { name: 'pod frozen', excuses: ['create'], run: () => freeze(pod()) },
    { name: 'Redis killed', excuses: ['create', 'manage'], run: () => killAndStart(redis) },
    { name: 'Redis frozen', excuses: ['create', 'manage'], run: () => freeze(redis) },
  ]
}

const killAndStart = async (process: SoakProcess): Promise<void> => {
  await process.child().kill()
  await delay(awayMs)
  await process.startAgain()
}

/** As a rolling update does. */
const restart = async (process: SoakProcess): Promise<void> => {
  await process.child().stop({ graceMs: 60_000 })
  await process.startAgain()
}

const freeze = async (process: SoakProcess): Promise<void> => {
  process.child().pause()
  await delay(frozenMs)
  process.child().resume()
}
