import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { say } from '../bench-process.ts'
import type { StormName } from './fleet-options.ts'
import type { Fleet } from './start-fleet.ts'
import type { FleetGateway } from './start-fleet-gateway.ts'

/** What a storm can hit. */
export interface StormTargets {
  readonly fleet: Fleet
  /** The number of the pod that a storm takes. */
  readonly pod: number
  /** Undefined: the way has none, and a storm on it changes nothing. */
  readonly gateway: FleetGateway | undefined
}

const podAwayMs = 2_000
const redisAwayMs = 10_000

/** Lets a storm come and pass. @throws what a start throws */
export const storm = async (name: StormName, { fleet, pod, gateway }: StormTargets): Promise<void> => {
  if (name === 'none') return
  say(`storm: ${name}`)
  if (name === 'pod-killed' || name === 'pod-replaced') {
    const process = fleet.processes[pod]
    if (process === undefined) throw new Error(`--storm ${name} wants pods that the bench has started`)
    await (name === 'pod-killed' ? process.child().kill() : process.child().stop())
    await delay(podAwayMs)
    await process.startAgain()
    say(`storm: pod ${pod} is back`)
  }
  if (name === 'all-cold') {
    await Promise.all(fleet.processes.map((process) => process.child().kill()))
    const files = await readdir(fleet.kvDirectory)
    await Promise.all(files.map((file) => rm(join(fleet.kvDirectory, file), { recursive: true })))
    await Promise.all(fleet.processes.map((process) => process.startAgain()))
    say('storm: all pods are back, and nothing is stored')
  }
  if (name === 'gateway-killed') await gateway?.killGateway()
  if (name === 'redis-away') {
    gateway?.redis?.pause()
    await delay(redisAwayMs)
    gateway?.redis?.resume()
  }
}
