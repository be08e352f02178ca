/** `make bench-waiting-turns`: how long the queue of waiting turns holds the event loop at its limits. */

import { setImmediate } from 'node:timers/promises'
import { createGatewayParts } from '../playground/replay/gateway-parts.ts'
import { parseReplayOptions } from '../playground/replay/replay-options.ts'
import { createSeededRandom } from '../playground/replay/seeded-random.ts'
import { createVirtualTime } from '../playground/replay/virtual-time.ts'
import { type Admission, createAdmission } from '../src/admission/admission.ts'
import { planAdmission } from '../src/admission/plan/plan-admission.ts'
import { admitTurn, type Choice } from '../src/context/admit-turn.ts'
import type { RoutingInput } from '../src/routing/router.ts'
import { machineNow, machineText, say } from './bench-process.ts'
import { readOptions } from './read-options.ts'

const values = readOptions('How long the queue of waiting turns holds the event loop.', {
  pods: { value: 'N,…', meaning: 'numbers of pods', default: '100,500' },
  waiting: { value: 'N', meaning: 'turns that wait', default: '1000' },
  seconds: { value: 'N', meaning: 'of looks for room', default: '5' },
})
const waiting = Number(values.waiting)

/** Of each prompt, almost all of which lies in a pod, where turns have KV. */
const promptTokens = 30_000
const model = 'model'
const maxWaitMs = 20_000

interface Rig {
  readonly pods: number
  readonly hasKv: boolean
  /** Whether turns wait for resources, one copy of which each pod has. Else for room, of which there is none. */
  readonly needsResources: boolean
}

interface Route extends Choice<Route> {}

/** A queue before pods that have no room, and the time that each call of it took. */
const createRig = ({ pods, hasKv, needsResources }: Rig) => {
  const time = createVirtualTime()
  // Waits are virtual, work is not.
  const nowMs = () => time.nowMs() + performance.now()
  const { settings } = parseReplayOptions(['no trace', '--pods', String(pods)])
  const parts = createGatewayParts({ settings, policy: 'predicted-ttft', nowMs, random: createSeededRandom() })
  const requirements = needsResources ? ['prefill=slot:1'] : []
  const lists = { requirements, resources: [], globalResources: [], priorities: [], objectives: [] }
  const planned = planAdmission({ ...lists, defaultPriority: 1 }, undefined)
  if (planned.kind === 'invalid') throw new Error('the requirements are invalid')
  const holdsMs: number[] = []
  const timed = <T>(work: () => T): T => {
    const startedMs = performance.now()
    const result = work()
    holdsMs.push(performance.now() - startedMs)
    return result
  }
  const queue = createAdmission({
    plan: planned.plan,
    maxWaiting: waiting,
    maxWaitMs,
    messageTimeoutMs: maxWaitMs + 2_000,
    leaseMs: 660_000,
    nowMs,
    startTimer: (callback, delayMs) => time.startTimer(() => timed(callback), delayMs),
    events: { settled: () => {}, leaseExpired: () => {} },
  })
  const admission: Admission = {
    ...queue,
    admit: (...work) => timed(() => queue.admit(...work)),
    roomAt: (pod) => timed(() => queue.roomAt(pod)),
    release: (...work) => timed(() => queue.release(...work)),
  }

  const routeTo = (input: RoutingInput, mayChoose?: (pod: string) => boolean): Route | undefined => {
    const outcome = parts.router.route(input, undefined, mayChoose)
    if (outcome.kind !== 'routed') return undefined
    const { pod, policy } = outcome
    return { pool: parts, pod, policy, input, objective: undefined, among: (allowed) => routeTo(input, allowed) }
  }

  const attempt = async () => ({ hasRoom: needsResources, accept: () => {}, withdraw: async () => {} })

  let turns = 0
  const ask = (): void => {
    turns += 1
    const pod = parts.addresses[turns % pods] ?? ''
    const residentTokens = new Map(hasKv ? [[pod, promptTokens - 10]] : [])
    const route = routeTo({ affinityKey: `session-${turns}`, lastPod: undefined, model, promptTokens, residentTokens })
    if (route === undefined) throw new Error('there is no pod')
    const turn = { turnId: `turn-${turns}`, tenant: `tenant-${turns % 10}`, route, loadMs: 1_000 }
    const scope = { signal: new AbortController().signal, extendDeadline: () => {}, releaseBody: () => {} }
    const admitted = admitTurn(
      { admission, events: { routed: () => {} } },
      { ...turn, seeksRoom: !needsResources },
      scope,
      attempt,
    )
    // Turns that are refused in the end.
    admitted.catch(() => {})
  }

  /** The time of calls in what is measured. */
  const measure = async (name: string, run: () => Promise<void>): Promise<void> => {
    holdsMs.length = 0
    await run()
    const total = holdsMs.reduce((sum, ms) => sum + ms, 0)
    const longest = Math.max(0, ...holdsMs).toFixed(1)
    const what = `${name}${hasKv ? ', KV in full pods' : ''}`
    say(`${`${pods} pods`.padEnd(10)}${what.padEnd(46)}${longest.padStart(8)} ms  ${total.toFixed(0).padStart(7)} ms`)
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += 10) {
      time.runUntil(time.nowMs() + 10)
      await setImmediate()
    }
  }
  return { admission, addresses: parts.addresses, ask, measure, pass }
}

const run = async (given: Rig): Promise<void> => {
  const { admission, addresses, ask, measure, pass } = createRig(given)
  const wanted = given.needsResources ? 'resources' : 'room'
  await measure(`turns arrive that wait for ${wanted}`, async () => {
    while (admission.waiting() < waiting) {
      ask()
      await setImmediate()
    }
  })
  if (given.needsResources)
    await measure('turns end', async () => {
      for (let turn = 1; turn <= 50; turn += 1) {
        admission.release('prefill', `turn-${turn}`)
        await setImmediate()
      }
    })
  else {
    await measure(`looks for room, ${values.seconds} s`, () => pass(Number(values.seconds) * 1000))
    await measure('room is reported', async () => {
      for (const pod of addresses.slice(0, 50)) {
        admission.roomAt(pod)
        await setImmediate()
      }
    })
  }
  await measure('the time of all is over', () => pass(maxWaitMs))
}

const machine = machineNow()
say('first some that do not count: code is compiled in it')
for (const needsResources of [false, true]) await run({ pods: 20, hasKv: true, needsResources })
say(`${waiting} turns wait; the longest call, and all together`)
for (const pods of values.pods.split(',').map(Number)) {
  for (const hasKv of [false, true]) await run({ pods, hasKv, needsResources: false })
  await run({ pods, hasKv: false, needsResources: true })
}
say(machineText(machine))
