import { readFileSync } from 'node:fs'
import { type FleetDescription, fleetDescriptionSchema } from '../../../playground/vllm/fleet-description.ts'

/** The fleet that Jest's global setup started or was given. @throws Error when there is none */
export const vllmFleet = (): FleetDescription => {
  const file = process.env['VLLM_FLEET']
  if (file === undefined) throw new Error('There is no fleet: run these tests with make test-vllm.')
  return fleetDescriptionSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
}

/** One pod by number. @throws Error when the fleet has fewer */
export const vllmPod = (number: number): FleetDescription['pods'][number] => {
  const pod = vllmFleet().pods[number]
  if (pod === undefined) throw new Error(`The fleet has no pod ${number}.`)
  return pod
}
