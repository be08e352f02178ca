import type { Door, EnvoyFacts } from '../envoy-facts.ts'
import type { Facts } from '../facts.ts'
import { type Check, checkOf, type Problems } from '../finding.ts'

/** What a check may compare a door with. */
export interface DoorParts extends Pick<Facts, 'lua' | 'settings'> {
  readonly envoy: EnvoyFacts
}

export const noDoor = 'no HTTP connection manager of this Envoy asks a gateway'

/**
 * A check of each place where clients come in. `wirings`: `routes` for what an Envoy needs that finds turns by routes,
 * as in envoy.yaml, and an Envoy with an endpoint picker does not.
 */
export const doorCheck = (
  name: string,
  wirings: 'routes' | 'all',
  find: (door: Door, parts: DoorParts) => Problems | string,
): Check =>
  checkOf(name, 'envoy', (envoy, { settings, lua }) => {
    const doors = envoy.doors.filter(({ isPicker }) => wirings === 'all' || !isPicker)
    if (envoy.doors.length === 0) return noDoor
    if (doors.length === 0) return 'not needed where the gateway is an endpoint picker'
    const results = doors.map((door) => find(door, { envoy, lua, settings }))
    // Several listeners may share routes and clusters.
    const found = results.flatMap((result) => (typeof result === 'string' ? [] : result))
    const problems = new Map(found.map((one) => [one.problem, one]))
    const skipped = results.find((result) => typeof result === 'string')
    return problems.size === 0 && skipped !== undefined ? skipped : [...problems.values()]
  })
