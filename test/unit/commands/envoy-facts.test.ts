import { expect, test } from '@jest/globals'
import { allChecks } from '../../../src/commands/doctor/checks/all-checks.ts'
import { asksGateway, forwardingRoutes, readEnvoyFacts } from '../../../src/commands/doctor/envoy-facts.ts'
import { diagnose } from '../../../src/commands/doctor/finding.ts'
import { known } from '../../../src/commands/doctor/known.ts'
import { unaskedFacts } from '../../support/unasked-facts.ts'

const type = (name: string) => ({ '@type': `type.googleapis.com/${name}` })
const extProc = (name: string, cluster: string, namespaces: readonly string[]) => ({
  name,
  disabled: true,
  typed_config: {
    ...type('envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor'),
    grpc_service: { envoy_grpc: { cluster_name: cluster } },
    message_timeout: '120s',
    failure_mode_allow: true,
    metadata_options: { receiving_namespaces: { untyped: namespaces } },
  },
})
const lua = (source: object) => ({
  name: 'lua',
  typed_config: { ...type('envoy.extensions.filters.http.lua.v3.Lua'), default_source_code: source },
})
const enabled = { ...type('envoy.config.route.v3.FilterConfig'), config: {} }
const contextLua = 'local function decision(handle) return handle:streamInfo():dynamicMetadata():get("ctx") end\n'

/** An Envoy whose listeners, routes and clusters come from a control plane, with a filter for each policy. */
const controlled = (options: { readonly source: object; readonly pendingOverflow: number }) =>
  readEnvoyFacts({
    serverInfo: { version: 'abc/1.40.1/Clean/RELEASE/BoringSSL' },
    runtime: { entries: { key: { final_value: 'true', layer_values: ['true'] } } },
    clusters: {
      cluster_statuses: [
        {
          name: 'engines',
          host_statuses: [
            { address: { socket_address: { address: '10.0.0.1', port_value: 8000 } } },
            { address: { socket_address: { address: '2001:db8::1', port_value: 8000 } } },
            { address: { pipe: { path: '/run/engine' } } },
          ],
        },
      ],
    },
    stats: {
      stats: [
        { name: 'cluster.engines.upstream_rq_pending_overflow', value: options.pendingOverflow },
        { histograms: {} },
      ],
    },
    configDump: {
      configs: [
        {
          dynamic_listeners: [
            {
              name: 'removed',
            },
            {
              active_state: {
                listener: {
                  name: 'http',
                  filter_chains: [{ filters: [{ name: 'tcp', typed_config: type('envoy.TcpProxy') }] }],
                  default_filter_chain: {
                    filters: [
                      {
                        typed_config: {
                          ...type('envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
                          rds: { route_config_name: 'default/http' },
                          http_filters: [
                            extProc('another', 'authorizer', []),
                            extProc('turns', 'gateway', ['ctx', 'envoy.lb']),
                            extProc('bodies', 'gateway', ['ctx', 'envoy.lb']),
                            lua(options.source),
                          ],
                        },
                      },
                    ],
                  },
                },
              },
            },
          ],
        },
        {
          dynamic_route_configs: [
            {
              route_config: {
                name: 'default/http',
                virtual_hosts: [
                  {
                    name: 'all',
                    routes: [
                      {
                        match: { path: '/v1/completions', headers: [{ name: 'x-session-id' }] },
                        route: { cluster: 'engines', timeout: '600s' },
                        typed_per_filter_config: { turns: enabled },
                      },
                      {
                        match: { prefix: '/v1/models' },
                        route: { weighted_clusters: { clusters: [{ name: 'engines' }] }, timeout: '600s' },
                      },
                      { match: { prefix: '/' }, direct_response: { status: 404 } },
                    ],
                  },
                ],
              },
            },
          ],
        },
        { dynamic_active_clusters: [{ cluster: { name: 'engines' } }, { cluster: { name: 'gateway' } }] },
      ],
    },
  })

const examine = (envoy: ReturnType<typeof controlled>) => {
  const files = { contextCache: contextLua, sessionNames: '', read: () => undefined }
  return diagnose(allChecks, { ...unaskedFacts, envoy: known(envoy), lua: files })
}

test('routes and filters of a control plane are those of its listeners', () => {
  const facts = controlled({ source: { inline_string: contextLua }, pendingOverflow: 0 })
  expect(facts.version).toBe('1.40.1')
  expect(facts.hosts.get('engines')).toEqual(['10.0.0.1:8000', '[2001:db8::1]:8000'])
  expect(facts.doors.map(({ name, extProcs }) => [name, extProcs.map(({ filter }) => filter.name)])).toEqual([
    ['http', ['turns', 'bodies']],
  ])
  const [door] = facts.doors
  const asked = door && forwardingRoutes(door).map((at) => [at.label, asksGateway(door, at)])
  expect(asked).toEqual([
    ['/v1/completions with x-session-id', true],
    ['/v1/models', false],
  ])
})

test('what circuit breakers refused is named', () => {
  const { findings } = examine(controlled({ source: { inline_string: contextLua }, pendingOverflow: 76 }))
  expect(findings.filter(({ check }) => check === 'overflows').map(({ problem }) => problem)).toEqual([
    "cluster.engines.upstream_rq_pending_overflow is 76 since Envoy's start.",
  ])
})

test.each([
  ['inline, the same', { inline_string: `${contextLua}\n` }, []],
  ['inline in base64, the same', { inline_bytes: Buffer.from(contextLua).toString('base64') }, []],
  [
    'inline, changed',
    { inline_string: `-- older\n${contextLua}` },
    [/^filter lua is not the context-cache\.lua of this/],
  ],
  ['another one', { inline_string: 'function envoy_on_request() end' }, [/^No Lua filter runs context-cache\.lua/]],
])('a Lua file: %s', (_what, source, problems) => {
  const { findings } = examine(controlled({ source, pendingOverflow: 0 }))
  const found = findings.filter(({ check }) => check === 'lua').map(({ problem }) => problem)
  expect(found).toEqual(problems.map((problem) => expect.stringMatching(problem)))
})

test('a Lua file that Envoy reads elsewhere is not compared; its digest is said', () => {
  const { notChecked } = examine(
    controlled({ source: { filename: '/etc/envoy/context-cache.lua' }, pendingOverflow: 0 }),
  )
  expect(notChecked.find(({ check }) => check === 'lua')?.why).toMatch(
    /^Envoy reads \/etc\/envoy\/context-cache\.lua by itself; it should have the SHA-256 [0-9a-f]{64} /,
  )
})
