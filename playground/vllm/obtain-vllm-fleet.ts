import type { Environment, Report } from '../launcher/server-tool.ts'
import { type FleetDescription, readFleetDescription } from './fleet-description.ts'
import { isAlive } from './is-alive.ts'
import { startVllmFleet } from './start-vllm-fleet.ts'

/** A fleet to work with, and how to let go of it. */
export interface ObtainedVllmFleet {
  readonly description: FleetDescription
  /** Stops the fleet if it was started here; one that ran before runs on. */
  release(): Promise<void>
}

/**
 * The fleet that `VLLM_FLEET` describes (a file that `make vllm-up` writes), else one of its own on free ports.
 * @throws Error when the file does not describe a running fleet, and all that `startVllmFleet` throws
 */
export const obtainVllmFleet = async (options: {
  readonly env: Environment
  readonly onLine: Report
  readonly signal?: AbortSignal | undefined
}): Promise<ObtainedVllmFleet> => {
  const file = options.env['VLLM_FLEET']
  if (file) {
    const description = await readFleetDescription(file)
    if (!isAlive(description.pid)) throw new Error(`The fleet of VLLM_FLEET=${file} runs no more.`)
    options.onLine(`using the fleet of ${file}: pods ${description.pods.map(({ address }) => address).join(', ')}`)
    return { description, release: async () => undefined }
  }
  const fleet = await startVllmFleet(options)
  return { description: fleet.description, release: () => fleet.stop() }
}
