import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Environment } from '../run-command.ts'
import type { FleetDescription } from './fleet-description.ts'
import { readFleetPorts, takenPorts } from './fleet-ports.ts'
import { type RunningVllmFleet, startVllmFleet, vllmFolder } from './start-vllm-fleet.ts'

export interface RunVllmFleetOptions {
  readonly env: Environment
  /** Prints a line for people; both return the exit code that belongs to it. */
  readonly print: (line: string) => number
  readonly fail: (line: string) => number
  /** Resolves when everything is to end. */
  readonly untilStopped: () => Promise<unknown>
}

/** `context-cache-gateway vllm-up`: a fleet on fixed ports until Ctrl-C. Resolves to the exit code; nothing stays behind. */
export const runVllmFleet = async (options: RunVllmFleetOptions): Promise<number> => {
  const { print, fail } = options
  const wanted = await readFleetPorts(options.env)
  if (wanted.kind === 'invalid') return fail(wanted.message)
  const [taken] = await takenPorts(wanted.ports)
  if (taken !== undefined) {
    return fail(
      `Port ${taken} is in use. Choose others: FLEET_POD_PORTS=8111,8112 FLEET_LMCACHE_PORTS=9111,9112 FLEET_COORDINATOR_PORT=9210 make vllm-up`,
    )
  }
  const file = join(vllmFolder(options.env), `fleet-${wanted.ports.coordinator}.json`)
  const giveUp = new AbortController()
  const stopped = options.untilStopped().then(() => giveUp.abort(new Error('interrupted')))
  let fleet: RunningVllmFleet | undefined
  try {
    fleet = await startVllmFleet({ ...options, onLine: print, ports: wanted.ports, signal: giveUp.signal })
    await writeFile(file, `${JSON.stringify(fleet.description, null, 2)}\n`)
    print(readyText(fleet.description, file))
    await stopped
    return 0
  } catch (error) {
    if (giveUp.signal.aborted) return 0
    return fail(error instanceof Error ? error.message : String(error))
  } finally {
    if (fleet !== undefined) {
      print('stopping')
      await rm(file, { force: true })
      await fleet.stop()
    }
  }
}

/** What to do with the fleet, ready to be copied. */
export const readyText = (fleet: FleetDescription, file: string): string => {
  const instances = fleet.pods.map(({ address, lmcacheInstance }) => `${address}=${lmcacheInstance}`)
  return [
    `ready  pods ${fleet.pods.map(({ address }) => address).join(', ')}  model ${fleet.servedModelName}  coordinator ${fleet.coordinatorUrl}  logs ${fleet.logFolder}`,
    '',
    'The model has random weights: its text is noise, its prefill, its KV and its times are real.',
    '',
    'Start the gateway on it, in another terminal (Ctrl-C here ends the fleet):',
    `  PODS=${fleet.pods.map(({ address }) => address).join(',')} CONNECTOR=lmcache LMCACHE_URL=${fleet.coordinatorUrl} LMCACHE_INSTANCES=${instances.join(',')} make run`,
    '',
    'Run the tests on it instead of on a fleet of their own:',
    `  VLLM_FLEET=${file} make test-vllm`,
  ].join('\n')
}
