import { filterHeaders, requestKeyHeader } from '../../../context/context-cache-manager.ts'
import { internalHeaders } from '../../../extproc/picker/picker-request.ts'
import { type Door, engineClusters, filtersOf, forwardingRoutes } from '../envoy-facts.ts'
import { jwtSchema } from '../envoy-schema.ts'
import type { Check, Problem, Problems } from '../finding.ts'
import { doorCheck } from './door-check.ts'

/** Only the filter session_names sets them. */
const setByLua: readonly string[] = Object.values(filterHeaders)
const overwrites = 'OVERWRITE_IF_EXISTS_OR_ADD'

const mutationsOf = ({ manager }: Door) =>
  manager.early_header_mutation_extensions.flatMap(({ typed_config }) => typed_config.mutations)

const removedEarly = (door: Door): ReadonlySet<string> =>
  new Set(mutationsOf(door).flatMap(({ remove }) => remove?.toLowerCase() ?? []))

/** Headers that hold a claim of a verified token: Envoy removes what a client sends in them, whether there is a token or not. */
const setByTokens = ({ manager }: Door): ReadonlySet<string> =>
  new Set(
    filtersOf(manager, 'JwtAuthentication').flatMap(({ typed_config }) =>
      Object.values(jwtSchema.safeParse(typed_config).data?.providers ?? {}).flatMap(({ claim_to_headers: claims }) =>
        claims.map(({ header_name: name }) => name.toLowerCase()),
      ),
    ),
  )

/** Headers that reach engines as a client sent them, on one route or more. */
const reachingEngines = (door: Door): readonly string[] => {
  const early = removedEarly(door)
  return internalHeaders.filter((name) =>
    forwardingRoutes(door).some(({ host, route }) => {
      const late = [route, host, door.routes].flatMap((one) => one.request_headers_to_remove)
      return !early.has(name) && !late.includes(name)
    }),
  )
}

const spoofedHeaders = doorCheck('spoofed-headers', 'routes', (door, { settings }) => {
  const early = removedEarly(door)
  const problems: Problem[] = []
  const key = mutationsOf(door).find(({ append }) => append?.header.key === requestKeyHeader)?.append
  const isKeyOwn = key?.append_action === overwrites && key.header.value === '%UNIQUE_ID%'
  if (!isKeyOwn)
    problems.push({
      severity: 'error',
      problem: `early_header_mutation does not overwrite ${requestKeyHeader}${key === undefined ? '' : ` (${key.append_action ?? 'APPEND_IF_EXISTS_OR_ADD'}, ${key.header.value})`}.`,
      why: 'A client that knows the key of another request can end its turn.',
      fix: `early_header_mutation: { append: { header: { key: ${requestKeyHeader}, value: "%UNIQUE_ID%" }, append_action: ${overwrites} } }`,
    })
  const believed = setByLua.filter((name) => !early.has(name))
  if (believed.length > 0)
    problems.push({
      severity: 'error',
      problem: `early_header_mutation does not remove ${believed.join(', ')}.`,
      why: 'The gateway believes them: a client names a model and marks of a prompt that its body does not have.',
      fix: `early_header_mutation: ${believed.map((name) => `{ remove: ${name} }`).join(', ')}`,
    })
  const reaching = reachingEngines(door).filter(
    (name) => !believed.includes(name) && !(isKeyOwn && name === requestKeyHeader),
  )
  if (reaching.length > 0)
    problems.push({
      severity: 'error',
      problem: `request_headers_to_remove lacks ${reaching.join(', ')}.`,
      why: 'Values of clients reach the engines as if the gateway had set them.',
      fix: `virtual host: request_headers_to_remove: [${internalHeaders.join(', ')}]`,
    })
  const { principalHeader } = settings.tenant
  if (principalHeader !== undefined && !early.has(principalHeader) && !setByTokens(door).has(principalHeader))
    problems.push({
      severity: 'warning',
      problem: `early_header_mutation does not remove ${principalHeader}, which is tenant.principalHeader.`,
      why: 'Unless something in front of Envoy removes it, a client names itself as any tenant.',
      fix: `early_header_mutation: { remove: ${principalHeader} }`,
    })
  return problems
})

const chosenPods = doorCheck('destinations', 'all', (door, { envoy }) =>
  engineClusters(envoy, door).flatMap(({ name, load_balancing_policy: policy }): Problems => {
    const sources = policy?.policies.flatMap(
      ({ typed_extension_config: { typed_config: config } }) =>
        (config?.['@type'].endsWith('.OverrideHost') ? config.override_host_sources : undefined) ?? [],
    )
    const fix = `cluster ${name}: override_host_sources: [{ metadata: { key: envoy.lb, path: [{ key: x-gateway-destination-endpoint }] } }]`
    if (sources === undefined || sources.length === 0)
      return {
        severity: 'error',
        problem: `Cluster ${name} has no load balancing policy override_host.`,
        why: 'The pod that the gateway names is ignored, and turns do not find their KV.',
        fix: `cluster ${name}: load_balancing_policy of the cluster pods in envoy.yaml`,
      }
    const early = removedEarly(door)
    const open = sources.flatMap(({ header }) => (header === undefined || early.has(header) ? [] : [header]))
    if (open.length === 0) return []
    return {
      severity: 'error',
      problem: `Cluster ${name}: override_host reads the header ${open.join(', ')}, which clients can send.`,
      why: 'A client chooses its pod.',
      fix,
    }
  }),
)

// A picker compares paths as they are, on every route.
const disguises = doorCheck('disguised-requests', 'routes', ({ manager }) => {
  const action = manager.common_http_protocol_options?.headers_with_underscores_action ?? 'ALLOW'
  const wrong = [
    ...(manager.use_remote_address ? [] : ['use_remote_address: true']),
    ...(manager.normalize_path ? [] : ['normalize_path: true']),
    ...(manager.merge_slashes ? [] : ['merge_slashes: true']),
    ...(action === 'ALLOW' ? ['common_http_protocol_options: { headers_with_underscores_action: DROP_HEADER }'] : []),
  ]
  if (wrong.length === 0) return []
  return {
    severity: 'warning',
    problem: `The HTTP connection manager lacks ${wrong.join(', ')}.`,
    why: 'A disguised path, header or address passes for another one, and goes around routes and filters.',
    fix: wrong.join('; '),
  }
})

/** What clients could pretend. */
export const spoofingChecks: readonly Check[] = [spoofedHeaders, chosenPods, disguises]
