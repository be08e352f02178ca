import { asksGateway, type Door, forwardingRoutes } from '../envoy-facts.ts'
import type { Check, Problems } from '../finding.ts'
import { doorCheck } from './door-check.ts'

/** What no decision can do without. */
const needed = [
  ':method',
  ':path',
  'authorization',
  'x-api-key',
  'api-key',
  'content-type',
  'x-session-id',
  'x-session-ttl',
  'x-context-request-key',
]

/** Exact names; undefined: all headers are forwarded. */
const allowedBy = ({ extProcs }: Door): readonly string[] | undefined => {
  const lists = extProcs.map(({ config }) => config.forward_rules?.allowed_headers?.patterns)
  if (lists.some((list) => list === undefined)) return undefined
  return lists.flatMap((list) => list?.flatMap(({ exact }) => exact ?? []) ?? [])
}

const forwardedHeaders = doorCheck('forwarded-headers', 'all', (door, { settings }) => {
  const allowed = allowedBy(door)
  // Envoy Gateway has no such list.
  if (allowed === undefined) return []
  const { principalHeader } = settings.tenant
  const headers = settings.sessions.implicit.names.filter((name) => !name.startsWith('body.'))
  const missing = [...needed, ...(principalHeader === undefined ? [] : [principalHeader])].filter(
    (name) => !allowed.includes(name),
  )
  const unseen = headers.filter((name) => !allowed.includes(name) && !missing.includes(name))
  const fixOf = (names: readonly string[]): string =>
    `ext_proc: forward_rules: allowed_headers: patterns: ${names.map((name) => `{ exact: "${name}" }`).join(', ')}`
  return [
    ...(missing.length === 0
      ? []
      : [
          {
            severity: 'error',
            problem: `ext_proc does not forward ${missing.join(', ')}.`,
            why: 'The gateway does not see who calls, or which session is meant, and refuses or ignores it.',
            fix: fixOf(missing),
          } as const,
        ]),
    ...(unseen.length === 0
      ? []
      : [
          {
            severity: 'warning',
            problem: `ext_proc does not forward ${unseen.join(', ')} of sessions.implicit.names.`,
            why: 'Conversations that clients name in them have no session.',
            fix: fixOf(unseen),
          } as const,
        ]),
  ]
})

const routesOfNames = doorCheck('routes-of-names', 'routes', (door, { settings }): Problems => {
  const routed = new Set(
    forwardingRoutes(door)
      .filter((at) => asksGateway(door, at))
      .flatMap(({ route }) => route.match.headers.map(({ name }) => name)),
  )
  const names = ['x-session-id', 'x-session-ttl', ...settings.sessions.implicit.names]
  const missing = [...new Set(names)].filter((name) => !name.startsWith('body.') && !routed.has(name))
  if (missing.length === 0) return []
  return {
    severity: missing.some((name) => name.startsWith('x-session-')) ? 'error' : 'warning',
    problem: `No route that asks the gateway matches ${missing.join(', ')}.`,
    why: 'Requests with them go past the gateway, and have no session.',
    fix: `a route of envoy.yaml for each, in front of the one that bypasses the gateway, or sessions.implicit.names without them`,
  }
})

export const headerChecks: readonly Check[] = [forwardedHeaders, routesOfNames]
