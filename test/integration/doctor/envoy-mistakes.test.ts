import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parseDocument } from 'yaml'
import type { EnvoyConfigFile } from '../../../playground/envoy-config.ts'
import { freePort } from '../../../playground/free-port.ts'
import { startEnvoy } from '../../../playground/start-envoy.ts'
import { allChecks } from '../../../src/commands/doctor/checks/all-checks.ts'
import { diagnose } from '../../../src/commands/doctor/finding.ts'
import { gatherFacts } from '../../../src/commands/doctor/gather.ts'

/** What doctor says of a real Envoy with one of the repository's configurations, changed. */
const examine = async (change: (text: string) => string, file: EnvoyConfigFile = 'envoy.yaml') => {
  const listen = `127.0.0.1:${await freePort()}`
  const addresses = { listen, pods: ['127.0.0.1:1', '127.0.0.1:2'], gateways: ['127.0.0.1:3'] }
  const { adminAddress, child } = await startEnvoy({ file, addresses, change, concurrency: 1 })
  try {
    const places = { admin: 'http://127.0.0.1:3', isAdminGiven: false, url: undefined, config: undefined }
    return diagnose(allChecks, await gatherFacts({ ...places, envoy: `http://${adminAddress}` }))
  } finally {
    await child.stop()
  }
}

/** Replaces a text that must be there, everywhere. */
const replace =
  (from: string | RegExp, to: string) =>
  (text: string): string => {
    const changed = text.replaceAll(from, to)
    if (changed === text) throw new Error(`there is no ${String(from)}`)
    return changed
  }

const manager = ['static_resources', 'listeners', 0, 'filter_chains', 0, 'filters', 0, 'typed_config'] as const
const host = [...manager, 'route_config', 'virtual_hosts', 0] as const

interface Mistake {
  readonly check: string
  readonly change?: (text: string) => string
  /** The path of what is not there. */
  readonly removed?: readonly (string | number)[]
  readonly severity?: 'warning'
  readonly problems: readonly RegExp[]
}

/** Makes all of these mistakes. */
const withMistakes = (text: string, mistakes: readonly Mistake[]): string => {
  const document = parseDocument(mistakes.reduce((changed, { change }) => change?.(changed) ?? changed, text))
  for (const { removed } of mistakes)
    if (removed !== undefined && !document.deleteIn(removed)) throw new Error(`there is no ${removed.join('.')}`)
  return document.toString({ lineWidth: 0 })
}

describe('doctor and a real Envoy', () => {
  let folder: string
  let otherLua: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'doctor-'))
    otherLua = join(folder, 'context-cache.lua')
    const lua = await readFile(new URL('../../../deploy/envoy/context-cache.lua', import.meta.url), 'utf8')
    await writeFile(otherLua, lua.replace('16777216', '1048576'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  test.each(['envoy.yaml', 'deploy/envoy/picker.yaml'] as const)('finds nothing in %s', async (file) => {
    const { findings, passed } = await examine((text) => text, file)
    expect(findings).toEqual([])
    expect(passed).toEqual(expect.arrayContaining(['health-checks', 'circuit-breakers', 'decision-timeouts']))
  })

  /** One for each way to get the configuration wrong. */
  const mistakes: readonly Mistake[] = [
    {
      // streams are reset
      check: 'graceful-close',
      removed: ['layered_runtime'],
      problems: [/ext_proc_graceful_grpc_close is not set/],
    },
    {
      // a client of the gateway that is dropped
      check: 'graceful-close',
      removed: ['grpc_async_client_manager_config'],
      problems: [/drops its client of the gateway after 50 s/],
    },
    {
      // the defaults of Envoy
      check: 'circuit-breakers',
      change: (text) => text.replace(/circuit_breakers: &wide .*/, 'circuit_breakers: &wide {}'),
      problems: ['gateway_ends', 'gateway', 'pods'].map(
        (name) => new RegExp(`^Cluster ${name}: max_connections 1024 \\(the default\\), .* max_requests 1024`),
      ),
    },
    {
      // few retries
      check: 'circuit-breakers',
      severity: 'warning',
      change: replace(', max_retries: 1000', ''),
      // No access log sends to gateway_ends.
      problems: ['gateway', 'pods'].map((name) => new RegExp(`^Cluster ${name}: max_retries 3`)),
    },
    {
      // Envoy’s own limit of a body
      check: 'buffer-limits',
      removed: [...host, 'request_body_buffer_limit'],
      problems: [/^Envoy holds bodies of up to 1048576 bytes .* turns\.maxBodyBytes is 16777216/],
    },
    {
      // a low limit of the buffer filter
      check: 'buffer-limits',
      change: replace('buffer: { max_request_bytes: 16777216 }', 'buffer: { max_request_bytes: 4194304 }'),
      problems: [/max_request_bytes of the buffer filter is 4194304/],
    },
    {
      // no buffer filter on turns
      check: 'buffer-limits',
      severity: 'warning',
      change: replace(
        'typed_per_filter_config: { envoy.filters.http.buffer: *whole_body }',
        'typed_per_filter_config: {}',
      ),
      problems: [/buffer filter does not run on 1 routes .* with x-session-id/],
    },
    {
      // the client’s own key of a request
      check: 'spoofed-headers',
      change: (text) => text.replace('append_action: OVERWRITE_IF_EXISTS_OR_ADD', 'append_action: ADD_IF_ABSENT'),
      problems: [/does not overwrite x-context-request-key \(ADD_IF_ABSENT/],
    },
    {
      // the client’s own marks
      check: 'spoofed-headers',
      change: replace('- { remove: x-context-marks }', ''),
      problems: [/does not remove x-context-marks/],
    },
    {
      // headers that reach engines
      check: 'spoofed-headers',
      change: replace('target-pod, x-context-cache, ', ''),
      problems: [/request_headers_to_remove lacks target-pod, x-context-cache\./],
    },
    {
      // pods that a client names
      check: 'destinations',
      change: replace(
        /metadata:\s+\{\s*key: envoy\.lb,\s+path:\s+\[\s*\{ key: x-gateway-destination-endpoint \}\s*\]\s*\}/g,
        'header: x-gateway-destination-endpoint',
      ),
      problems: [/override_host reads the header x-gateway-destination-endpoint/],
    },
    {
      // pods that nobody names
      check: 'destinations',
      removed: ['static_resources', 'clusters', 0, 'load_balancing_policy'],
      problems: [/Cluster pods has no load balancing policy override_host/],
    },
    {
      // paths as they come
      check: 'disguised-requests',
      severity: 'warning',
      change: replace('merge_slashes: true', 'merge_slashes: false'),
      problems: [/lacks merge_slashes: true/],
    },
    {
      // less time than a load may take
      check: 'decision-timeouts',
      change: replace('max_message_timeout: 120s', 'max_message_timeout: 10s'),
      problems: [/waits 10 s at most for a decision .* kv\.loadBudgetMs of pool default is 30000/],
    },
    {
      // less time than a turn may wait
      check: 'decision-timeouts',
      change: replace('max_message_timeout: 120s', 'max_message_timeout: 60s'),
      problems: [/waits 60 s at most .* admission\.messageTimeoutMs is 120000/],
    },
    {
      // less time than Redis may take
      check: 'decision-timeouts',
      change: replace('message_timeout: 2s', 'message_timeout: 0.2s'),
      problems: [/message_timeout of ext_proc is 0\.2 s; sessions\.commandTimeoutMs is 250/],
    },
    {
      // Envoy’s default
      check: 'answer-timeouts',
      change: replace(/^( +)timeout: 600s$/gm, ''),
      problems: [/timeout of \d+ routes is 15 s \(the default\) \(first: \/v1\/context\)/],
    },
    {
      // answers that outlive their lease
      check: 'answer-timeouts',
      change: replace(/^( +)timeout: 600s$/gm, '$1timeout: 0s'),
      problems: [/timeout of \d+ routes is off .* turns\.leaseSeconds is 660/],
    },
    {
      // a silent prefill
      check: 'answer-timeouts',
      severity: 'warning',
      change: replace('stream_idle_timeout: 600s', 'stream_idle_timeout: 300s'),
      problems: [/stream_idle_timeout is 300 s/],
    },
    {
      // bodies that never come
      check: 'slow-clients',
      severity: 'warning',
      removed: [...manager, 'request_timeout'],
      problems: [/lacks request_timeout/],
    },
    {
      // one of another version
      check: 'access-log',
      change: replace('usage=%DYNAMIC_METADATA(answer:usage)%\\x1f', ''),
      problems: [/lacks usage: it is of another version/],
    },
    {
      // none
      check: 'access-log',
      removed: [...manager, 'access_log'],
      problems: [/no access log that reports the ends of turns/],
    },
    {
      // a file of another version
      check: 'lua',
      change: (text) => text.replace(/filename: \S*context-cache\.lua/, `filename: ${otherLua}`),
      problems: [/context-cache\.lua is not the context-cache\.lua of this version/],
    },
    {
      // a gateway that may say nothing
      check: 'metadata',
      change: replace(/untyped: \[ ?ctx, envoy\.lb ?\]/g, 'untyped: [envoy.lb]'),
      problems: [/does not accept the metadata ctx/],
    },
    {
      // turns that need a gateway
      check: 'failure-mode',
      severity: 'warning',
      change: replace('failure_mode_allow: true', 'failure_mode_allow: false'),
      problems: [/failure_mode_allow of ext_proc is false/],
    },
    {
      // credentials that the gateway does not see
      check: 'forwarded-headers',
      change: replace('{ exact: x-api-key },', ''),
      problems: [/does not forward x-api-key/],
    },
    {
      // a name without a route
      check: 'routes-of-names',
      severity: 'warning',
      change: replace('name: thread-id, present_match', 'name: thread-no, present_match'),
      problems: [/No route that asks the gateway matches thread-id/],
    },
    {
      // gateways that are down are asked
      check: 'health-checks',
      severity: 'warning',
      change: replace('common_lb_config: { healthy_panic_threshold: { value: 0 }, ', 'common_lb_config: { '),
      problems: [/healthy_panic_threshold of cluster gateway is 50/],
    },
  ]

  // An Envoy has one mistake of each check at a time.
  test.each([1, 2, 3])('finds the mistakes of an Envoy, and nothing else: %i', async (nth) => {
    const made = mistakes.filter(
      ({ check }, index) => mistakes.slice(0, index + 1).filter((one) => one.check === check).length === nth,
    )
    const { findings } = await examine((text) => withMistakes(text, made))

    const found = findings
      .map(({ check, severity, problem }) => ({ check, severity, problem }))
      .toSorted((a, b) => a.problem.localeCompare(b.problem))
    for (const { check, severity = 'error', problems } of made)
      expect(found.filter((one) => one.check === check)).toEqual(
        problems.map((problem) => ({ check, severity, problem: expect.stringMatching(problem) })),
      )
    expect(found).toHaveLength(made.flatMap(({ problems }) => problems).length)
  })
})
