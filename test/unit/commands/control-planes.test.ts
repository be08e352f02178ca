import { expect, test } from '@jest/globals'
import { allChecks } from '../../../src/commands/doctor/checks/all-checks.ts'
import { readEnvoyFacts } from '../../../src/commands/doctor/envoy-facts.ts'
import { diagnose } from '../../../src/commands/doctor/finding.ts'
import { known } from '../../../src/commands/doctor/known.ts'
import { defaultSettings, type Settings } from '../../../src/commands/doctor/settings.ts'
import { unaskedFacts } from '../../support/unasked-facts.ts'

const type = (name: string) => ({ '@type': `type.googleapis.com/envoy.${name}` })

interface Parts {
  readonly manager: object
  readonly routes: readonly object[]
  readonly clusters: readonly object[]
}

/** What doctor says of an Envoy whose control plane sends these parts, as `error check: problem`. */
const findingsOf = (
  { manager, routes, clusters }: Parts,
  settings: Settings = defaultSettings(),
): readonly string[] => {
  const hcm = {
    ...type('HttpConnectionManager'),
    rds: { route_config_name: 'r' },
    ...manager,
  }
  const listener = { name: 'http', filter_chains: [{ filters: [{ typed_config: hcm }] }] }
  const route_config = { name: 'r', virtual_hosts: [{ name: 'all', routes }] }
  const configs = [
    { dynamic_listeners: [{ active_state: { listener } }] },
    { dynamic_route_configs: [{ route_config }] },
    { dynamic_active_clusters: clusters.map((cluster) => ({ cluster })) },
  ]
  const envoy = readEnvoyFacts({
    configDump: { configs },
    serverInfo: { version: 'abc/1.40.0/Clean' },
    clusters: {},
    runtime: {},
    stats: {},
  })
  return diagnose(allChecks, { ...unaskedFacts, settings, envoy: known(envoy) }).findings.map(
    ({ severity, check, problem }) => `${severity} ${check}: ${problem}`,
  )
}

const wide = { thresholds: [{ max_connections: 4e9, max_pending_requests: 4e9, max_requests: 4e9, max_retries: 4e9 }] }
const overrideHost = (source: object) => ({
  policies: [
    { typed_extension_config: { typed_config: { ...type('OverrideHost'), override_host_sources: [source] } } },
  ],
})
const byMetadata = { metadata: { key: 'envoy.lb', path: [{ key: 'x-gateway-destination-endpoint' }] } }
const picker = { name: 'outbound|50051||picker', type: 'EDS', circuit_breakers: wide }
const pool = {
  name: 'outbound|54321||engines',
  type: 'EDS',
  circuit_breakers: wide,
  load_balancing_policy: overrideHost(byMetadata),
}

/** As istiod 1.31 sends an InferencePool: the filter asks nobody by itself, and the route says whom. */
const istio = (
  options: { readonly timeout?: string; readonly pool?: object; readonly picker?: object } = {},
): Parts => ({
  manager: {
    use_remote_address: true,
    normalize_path: true,
    stream_idle_timeout: '0s',
    request_timeout: '60s',
    http_filters: [
      {
        name: 'envoy.filters.http.ext_proc',
        typed_config: {
          ...type('ExternalProcessor'),
          grpc_service: { envoy_grpc: { cluster_name: 'dummy' } },
          failure_mode_allow: true,
          processing_mode: { request_header_mode: 'SKIP', response_header_mode: 'SKIP' },
          message_timeout: '1000s',
          metadata_options: { receiving_namespaces: { untyped: ['envoy.lb'] } },
        },
      },
    ],
  },
  routes: [
    {
      match: { prefix: '/' },
      route: { cluster: pool.name, timeout: options.timeout ?? '600s' },
      typed_per_filter_config: {
        'envoy.filters.http.ext_proc': {
          ...type('ExtProcPerRoute'),
          overrides: {
            processing_mode: { request_header_mode: 'SEND', request_body_mode: 'FULL_DUPLEX_STREAMED' },
            grpc_service: { envoy_grpc: { cluster_name: picker.name } },
          },
        },
      },
    },
  ],
  clusters: [
    { ...pool, ...options.pool },
    { ...picker, ...options.picker },
  ],
})

test.each<[string, Parts, readonly string[]]>([
  ['as it is', istio(), []],
  [
    'narrow circuit breakers of the picker',
    istio({ picker: { circuit_breakers: {} } }),
    [
      `error circuit-breakers: Cluster ${picker.name}: max_connections 1024 (the default), max_pending_requests 1024 (the default), max_requests 1024 (the default).`,
    ],
  ],
  [
    'a short timeout',
    istio({ timeout: '15s' }),
    ['error answer-timeouts: The timeout of 1 routes is 15 s (first: /).'],
  ],
  [
    'pods that clients name',
    istio({ pool: { load_balancing_policy: overrideHost({ header: 'x-gateway-destination-endpoint' }) } }),
    [
      `error destinations: Cluster ${pool.name}: override_host reads the header x-gateway-destination-endpoint, which clients can send.`,
    ],
  ],
  [
    'a picker that no control plane follows',
    istio({ picker: { type: 'STRICT_DNS' } }),
    [`warning health-checks: Cluster ${picker.name} has no health check.`],
  ],
])('an InferencePool on Istio: %s', (_what, parts, findings) => {
  expect(findingsOf(parts)).toEqual(findings)
})

/** What of Envoy Gateway's configuration guards headers. */
const guarded = (options: { readonly action?: string; readonly claims?: readonly object[]; readonly panic?: number }) =>
  findingsOf(
    {
      manager: {
        early_header_mutation_extensions: [
          {
            typed_config: {
              mutations: [
                {
                  append: {
                    header: { key: 'x-context-request-key', value: '%UNIQUE_ID%' },
                    append_action: options.action ?? 'OVERWRITE_IF_EXISTS_OR_ADD',
                  },
                },
              ],
            },
          },
        ],
        http_filters: [
          {
            name: 'jwt',
            typed_config: {
              ...type('JwtAuthentication'),
              providers: { issuer: { claim_to_headers: options.claims ?? [] } },
            },
          },
          {
            name: 'ext_proc',
            typed_config: {
              ...type('ExternalProcessor'),
              grpc_service: { envoy_grpc: { cluster_name: 'gateway' } },
            },
          },
        ],
      },
      routes: [{ match: { prefix: '/' }, route: { cluster: 'engines' } }],
      clusters: [
        {
          name: 'gateway',
          health_checks: [{}],
          common_lb_config: { healthy_panic_threshold: { value: options.panic ?? 1 } },
        },
      ],
    },
    { ...defaultSettings(), tenant: { principalHeader: 'x-principal' } },
  )

test('a key that Envoy overwrites may reach pods, one of a client may not', () => {
  const reaching = expect.stringMatching(/lacks .*x-context-request-key/)
  expect(guarded({ action: 'ADD_IF_ABSENT' })).toContainEqual(reaching)
  expect(guarded({})).not.toContainEqual(reaching)
})

test('a claim of a verified token names the tenant, a header of a client does not', () => {
  const named = expect.stringMatching(/does not remove x-principal/)
  expect(guarded({})).toContainEqual(named)
  expect(guarded({ claims: [{ header_name: 'x-principal', claim_name: 'sub' }] })).not.toContainEqual(named)
})

test('a panic threshold of 1 asks gateways that are down only where none is healthy', () => {
  const panics = expect.stringMatching(/^warning health-checks: healthy_panic_threshold/)
  expect(guarded({ panic: 50 })).toContainEqual(panics)
  expect(guarded({})).not.toContainEqual(panics)
})
