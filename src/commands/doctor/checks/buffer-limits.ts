import { membersOf } from '../../../json/members-of.ts'
import {
  asksGateway,
  type Door,
  type ForwardingRoute,
  filterSetting,
  filtersOf,
  forwardingRoutes,
  runsOn,
} from '../envoy-facts.ts'
import type { Check, Problem, Problems } from '../finding.ts'
import { doorCheck } from './door-check.ts'

/** How large a body Envoy holds, for the gateway and for the Lua filters. */
const bodyBuffer = doorCheck('buffer-limits', 'routes', (door, { settings }) => {
  const { maxBodyBytes } = settings.turns
  const held = forwardingRoutes(door).filter((at) => asksGateway(door, at) || runsLua(door, at))
  const low = held
    .map((at) => ({ at, bytes: bufferLimit(door, at) }))
    .filter(({ bytes }) => bytes < maxBodyBytes)
    .toSorted((a, b) => a.bytes - b.bytes)
  const [lowest] = low
  const problems: Problem[] = []
  if (lowest !== undefined) {
    problems.push({
      severity: 'error',
      problem: `Envoy holds bodies of up to ${lowest.bytes} bytes on ${low.length} routes (first: ${lowest.at.label}); turns.maxBodyBytes is ${maxBodyBytes}.`,
      why: 'Larger bodies get 413, though the gateway would take them.',
      fix: `virtual host ${lowest.at.host.name}: request_body_buffer_limit: ${maxBodyBytes}`,
    })
  }
  return [...problems, wholeBodies(door, maxBodyBytes)].flat()
})

/** The buffer filter, without which the gateway decides before the body has come. */
const wholeBodies = (door: Door, maxBodyBytes: number): Problems => {
  const asking = forwardingRoutes(door).filter((at) => asksGateway(door, at))
  const [filter] = filtersOf(door.manager, 'Buffer')
  const unheld = asking.filter((at) => filter === undefined || !runsOn(door, at, filter))
  const limits = filter === undefined ? [] : asking.map((at) => maxRequestBytes(door, at, filter.name))
  const least = Math.min(...limits.filter((limit) => limit !== undefined))
  const fix = `envoy.filters.http.buffer in front of ext_proc, on these routes: { buffer: { max_request_bytes: ${maxBodyBytes} } }`
  const [first] = unheld
  if (first !== undefined)
    return {
      severity: 'warning',
      problem: `The buffer filter does not run on ${unheld.length} routes that ask the gateway (first: ${first.label}).`,
      why: 'A client that holds its body back holds a slot of an engine meanwhile, and may read what others leave in it.',
      fix,
    }
  if (least >= maxBodyBytes) return []
  return {
    severity: 'error',
    problem: `max_request_bytes of the buffer filter is ${least}; turns.maxBodyBytes is ${maxBodyBytes}.`,
    why: 'Larger bodies get 413, though the gateway would take them.',
    fix,
  }
}

const maxRequestBytes = (door: Door, at: ForwardingRoute, filter: string): number | undefined => {
  const own = filterSetting(door, at, filter)?.['buffer']
  const general = filtersOf(door.manager, 'Buffer')[0]?.typed_config
  const bytes = membersOf(own ?? general)['max_request_bytes']
  return bytes === undefined ? undefined : Number(bytes)
}

const runsLua = (door: Door, at: ForwardingRoute): boolean =>
  filtersOf(door.manager, 'Lua').some((filter) => runsOn(door, at, filter))

const bufferLimit = (door: Door, { host, route }: ForwardingRoute): number =>
  route.request_body_buffer_limit ?? host.request_body_buffer_limit ?? door.bufferLimitBytes

export const bufferLimitChecks: readonly Check[] = [bodyBuffer]
