import type { Environment, Report } from '../run-command.ts'
import { type FleetDescription, readFleetDescription } from './fleet-description.ts'
import { startVllmFleet } from './start-vllm-fleet.ts'

/** A fleet to work with. */
export interface ObtainedVllmFleet {
  readonly description: FleetDescription
  /** Stops the fleet if it was started here; one that ran before runs on. */
  release(): Promise<void>
}

/**
 * The fleet that `VLLM_FLEET` describes (a file that `make vllm-up` writes), else one of its own on free ports.
 * @throws Error when the file does not describe a fleet, and what `startVllmFleet` throws
 */
export const obtainVllmFleet = async (options: {
  readonly env: Environment
  readonly onLine: Report
  readonly signal?: AbortSignal | undefined
}): Promise<ObtainedVllmFleet> => {
  const file = options.env['VLLM_FLEET']
  if (file) {
    const description = await readFleetDescription(file)
    options.onLine(`using the fleet of ${file}: pods ${description.pods.map(({ address }) => address).join(', ')}`)
    return { description, release: async () => undefined }
  }
  const fleet = await startVllmFleet(options)
  return { description: fleet.description, release: () => fleet.stop() }
}
