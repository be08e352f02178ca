import { readFile } from 'node:fs/promises'
import { type FleetDescription, fleetDescriptionSchema } from './fleet-description.ts'
import { type StartVllmFleetOptions, startVllmFleet } from './start-vllm-fleet.ts'

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
export const obtainVllmFleet = async (options: Omit<StartVllmFleetOptions, 'ports'>): Promise<ObtainedVllmFleet> => {
  const file = options.env['VLLM_FLEET']
  if (file) {
    const description = fleetDescriptionSchema.parse(JSON.parse(await readFile(file, 'utf8')))
    options.onLine(`using the fleet of ${file}: pods ${description.pods.map(({ address }) => address).join(', ')}`)
    return { description, release: async () => undefined }
  }
  const fleet = await startVllmFleet(options)
  return { description: fleet.description, release: () => fleet.stop() }
}
