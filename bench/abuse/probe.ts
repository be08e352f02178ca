import { setTimeout as pause } from 'node:timers/promises'
import { call } from '../context-api.ts'
import { percentile } from '../statistics.ts'
import type { Abused } from './start-abused.ts'

/** What other clients see. */
export interface Seen {
  readonly get: Latencies
  readonly turn: Latencies
  /** Longest delay of the gateway's event loop, milliseconds: collections of garbage and other processes included. */
  readonly longestDelayMs: number
  readonly failures: number
}

interface Latencies {
  readonly p50: number
  readonly p90: number
}

const pauseMs = 10

const latenciesOf = async (until: number, send: () => Promise<Response>, failed: () => void): Promise<Latencies> => {
  const took: number[] = []
  while (performance.now() < until) {
    const before = performance.now()
    const answer = await send()
    await answer.arrayBuffer()
    took.push(performance.now() - before)
    if (!answer.ok) failed()
    await pause(pauseMs)
  }
  return { p50: percentile(took, 0.5) ?? Number.NaN, p90: percentile(took, 0.9) ?? Number.NaN }
}

/** Gets a session and runs its turns, one after the other each, for some seconds. */
export const probe = async ({ url, adminUrl }: Abused, sessionId: string, seconds: number): Promise<Seen> => {
  // A look at the metric begins it anew.
  await longestDelayMs(adminUrl)
  const until = performance.now() + seconds * 1000
  let failures = 0
  const failed = (): void => {
    failures += 1
  }
  const turn = { method: 'POST', headers: { 'x-session-id': sessionId }, body: turnBody }
  const [get, turns] = await Promise.all([
    latenciesOf(until, () => call(`${url}/v1/context/${sessionId}`), failed),
    latenciesOf(until, () => call(`${url}/v1/completions`, turn), failed),
  ])
  return { get, turn: turns, longestDelayMs: await longestDelayMs(adminUrl), failures }
}

const turnBody = JSON.stringify({ model: 'bench', prompt: 'The quick brown fox. '.repeat(100) })

const longestDelayMs = async (adminUrl: string): Promise<number> => {
  const page = await (await fetch(`${adminUrl}/metrics`)).text()
  return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(page)?.[1])
}
