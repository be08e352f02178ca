import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { readEnvoyConfig } from '../../../playground/envoy-config.ts'
import { findEnvoy } from '../../../playground/install/find-envoy.ts'
import { ownEnvironment, toolsDir } from '../../../playground/paths.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { metricDefinitions, metricPrefix } from '../../../src/telemetry/metric-definitions.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { namesInEnvoy } from '../../support/envoy-names.ts'
import { essential, load } from '../../unit/config/load.ts'
import { keptRouteIn, routesIn } from './envoy-routes.ts'
import { chart, type Manifest, manifestsOf, root, useChart } from './use-chart.ts'

const env = ownEnvironment()
const engines = ['--set', 'engines.selector.app=vllm']
const { tools, folder, run, render, expectValid } = useChart()
const redis = ['--set', 'redis.existingSecret=redis-url']
const base = [...engines, ...redis]
const ownFilters = ['--set', 'envoy.enabled=true', '--values', join(root, 'deploy/envoy/own-filters.yaml')]

type Labels = Readonly<Record<string, string>>
const selector = z.object({ matchLabels: z.record(z.string(), z.string()) })
const networkPolicy = z.object({
  spec: z.object({
    podSelector: selector,
    ingress: z.array(
      z.object({
        ports: z.array(z.object({ port: z.union([z.string(), z.int()]) })).optional(),
        from: z.array(z.object({ podSelector: selector })),
      }),
    ),
  }),
})
const selects = ({ matchLabels }: z.infer<typeof selector>, labels: Labels): boolean =>
  Object.entries(matchLabels).every(([name, value]) => labels[name] === value)

/** The files of a ConfigMap. */
const filesOf = (text: string, name: string): Readonly<Record<string, string>> =>
  manifestsOf(text).find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)?.data ?? {}

const envoyFilesOf = (release: string) => filesOf(release, 'ctx-context-cache-gateway-envoy')
const envoyYamlOf = (release: string): string => envoyFilesOf(release)['envoy.yaml'] ?? ''

beforeAll(async () => {
  const { ca, cert, key } = await makeCertificate('gateway')
  const pems = { 'ca.crt': ca, 'tls.crt': cert, 'tls.key': key }
  const secrets = { ...pems, secret: 'x'.repeat(48), url: 'rediss://redis:6379' }
  for (const [name, text] of Object.entries(secrets)) await writeFile(join(folder(), name), text)
})

/** Envoy's configuration in a release, after Envoy itself has read it. */
const acceptedByEnvoy = async (release: string): Promise<string> => {
  const files = envoyFilesOf(release)
  for (const name of ['context-cache.lua', 'session-names.lua']) {
    expect(files[name]).toBe(await readFile(join(root, 'deploy/envoy', name), 'utf8'))
    await writeFile(join(folder(), name), files[name] ?? '')
  }
  const text = envoyYamlOf(release)
  const file = join(folder(), 'envoy.yaml')
  await writeFile(file, text.replaceAll('/etc/envoy', folder()).replaceAll('/run/secrets/tls', folder()))
  const envoy = await findEnvoy({ env, toolsDir: toolsDir(env) })
  await run([...envoy.command, '--mode', 'validate', '--config-path', file])
  return text
}

const namesByDefault = load(essential).sessions.implicit.names

const releases: readonly (readonly [string, readonly string[]])[] = [
  ['beside an Envoy that exists', base],
  ['with its own Envoy', [...base, '--set', 'envoy.enabled=true']],
  ['with filters of your own', [...base, ...ownFilters]],
  [
    'with engines that keep KV in slots',
    [...base, '--set', 'envoy.enabled=true,kv.connector=llamacpp-slots,kv.existingClaim=kv'],
  ],
  ['with LMCache', [...base, '--set', 'kv.connector=lmcache,kv.lmcacheUrl=http://lmcache:9000']],
  ['as endpoint picker', [...base, '--set', 'inferencePool.enabled=true']],
  ['as endpoint picker for Istio', [...base, '--set', 'inferencePool.enabled=true,inferencePool.istio=true']],
  [
    'with everything that is optional',
    [
      ...base,
      '--set',
      'autoscaling.enabled=true,serviceMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true',
      '--set',
      'tls.certManager.enabled=true,envoy.enabled=true,admin.tokenSecret.name=operators',
    ],
  ],
  [
    'of one gateway without Redis, by DNS',
    ['--set', 'replicas=1,engines.dnsName=engines.default.svc,tls.enabled=false'],
  ],
  [
    'with principals, for those whom its network policy lets in',
    [...base, '--set', 'tls.enabled=false,config.tenant.principalHeader=x-principal'],
  ],
  ['with a Redis Cluster', [...base, '--set', 'redis.kind=cluster']],
  [
    'with the Redis of sentinels, with TLS',
    [
      ...base,
      '--set',
      'redis.kind=sentinels,redis.sentinelMaster=mymaster,redis.sentinelPasswordKey=sentinel',
      '--set',
      'redis.tls.existingSecret=redis-tls,redis.tls.clientCertificate=true',
    ],
  ],
  ['with a certificate, beside an Envoy with its own', [...base, '--set', 'tls.existingSecret=a']],
]

describe('the chart', () => {
  test('passes helm lint', async () => {
    expect(await run([tools().helm, 'lint', '--strict', chart, ...base])).toMatch(/0 chart\(s\) failed/)
  })

  test.each(releases)('a release %s has valid manifests, and configures the gateway', async (_name, flags) => {
    const file = join(folder(), 'release.yaml')
    const release = await render(...flags)
    await writeFile(file, release)
    await expectValid(file)
    // Without a ready engine, too, ends of turns need an address to go to.
    expect(release).not.toContain('path: /readyz')

    const text = filesOf(release, 'ctx-context-cache-gateway')['config.yaml'] ?? ''
    const config = join(folder(), 'config.yaml')
    const [secret, url] = [join(folder(), 'secret'), join(folder(), 'url')]
    const files = {
      'tenant/secret': secret,
      'admin/token': secret,
      'redis/url': url,
      'redis/sentinel-password': secret,
    }
    const own = (changed: string, [name, path]: readonly [string, string]) =>
      changed.replace(`/run/secrets/${name}`, path)
    await writeFile(config, Object.entries(files).reduce(own, text))
    // A release named ctx: Kubernetes sets variables for its Services.
    const links = {
      CTX_CONTEXT_CACHE_GATEWAY_SERVICE_HOST: '10.0.0.1',
      CTX_CONTEXT_CACHE_GATEWAY_PORT: 'tcp://10.0.0.1:50051',
    }
    expect(loadConfig({ filePath: config, environment: links })).toMatchObject({ kind: 'loaded' })
  })

  test.each(
    ['context-cache', 'own-filters', 'responses']
      .map((name) => `envoy-gateway/${name}`)
      .concat('inference-pool/route', 'engines/vllm-lmcache'),
  )('deploy/%s.yaml, beside it, has valid manifests', (name) => expectValid(join(root, `deploy/${name}.yaml`)))

  test('Envoy accepts its configuration with filters of your own', async () => {
    const text = await acceptedByEnvoy(await render(...base, ...ownFilters))
    expect(text).not.toContain('cache_prompt')
    expect(text).toContain('- name: envoy.resource_monitors.cgroup_memory')
    expect(text).toContain('exact: x-principal')
  })

  test.each<{
    readonly when: string
    readonly set: string
    readonly named: readonly string[]
    readonly members?: string
    /** What keeps requests without a session out of slots. */
    readonly constants: 0 | 1
  }>([
    {
      when: 'by default, for engines without slots',
      set: 'kv.connector=prefix-cache',
      named: [...namesByDefault, 'x-context-name'],
      constants: 0,
    },
    {
      when: 'as the gateway has them, for engines with slots',
      set: 'kv.connector=llamacpp-slots,kv.existingClaim=kv,config.sessions.implicit.names={thread-id,x-session-id,x-own,body.own_key}',
      named: ['thread-id', 'x-session-id', 'x-own', 'x-context-name'],
      members: 'own_key',
      constants: 1,
    },
    {
      when: 'without x-session-id, for a connector of your own',
      set: 'config.kv.connectorModule=/own.mjs,config.sessions.implicit.names={x-claude-code-session-id}',
      named: ['x-claude-code-session-id', 'x-context-name'],
      constants: 1,
    },
    {
      when: 'switched off, for pools, which may have slots',
      set: 'config.pools[0].name=own,config.sessions.implicit.names={off},envoy.bodyNames={session_id}',
      named: [],
      constants: 1,
    },
    {
      when: 'also in bodies, for engines with slots by config',
      set: 'envoy.bodyNames={prompt_cache_key,session_id},config.kv.connector=llamacpp-slots',
      named: [...namesByDefault, 'x-context-name'],
      members: 'prompt_cache_key session_id',
      constants: 1,
    },
    {
      when: 'also in bodies, for engines without slots',
      set: 'envoy.bodyNames={prompt_cache_key}',
      named: [...namesByDefault, 'x-context-name'],
      members: 'prompt_cache_key',
      constants: 0,
    },
  ])(
    "Envoy accepts its configuration, and looks for clients' names $when",
    async ({ set, named, members, constants }) => {
      const text = await acceptedByEnvoy(await render(...base, '--set', 'envoy.enabled=true', '--set', set))
      expect(text.split('cache_prompt').length - 1).toBe(constants)
      expect(text).toContain('- name: envoy.resource_monitors.cgroup_memory')
      expect(text).not.toContain('exact: x-principal')
      const { routes, allowed } = namesInEnvoy(text)
      // Two routes bypass the gateway, but for what their bodies name.
      expect(routes.filter(({ header }) => header === undefined).map((one) => one.members)).toEqual(
        members === undefined ? [] : [members, members],
      )
      expect(routes.flatMap(({ header }) => header ?? []).toSorted()).toEqual(named.toSorted())
      const mayName = [...namesByDefault, 'x-context-name', 'x-own']
      expect(new Set(allowed.filter((name) => mayName.includes(name)))).toEqual(new Set([...named, 'x-session-id']))
      expect(allowed.includes('x-claude-code-agent-id')).toBe(named.includes('x-claude-code-session-id'))
    },
  )

  test('turns of /v1/responses have the route that envoy.yaml describes where responses are kept', async () => {
    const withEnvoy = [...base, '--set', 'envoy.enabled=true']
    const on = await acceptedByEnvoy(await render(...withEnvoy, '--set', 'config.responses.store=true'))
    const off = envoyYamlOf(await render(...withEnvoy))
    const addresses = { listen: '127.0.0.1:1', pods: [], gateways: [], connector: 'prefix-cache' }
    const described = await readEnvoyConfig('envoy.yaml', { ...addresses, keepsResponses: true })
    expect(routesIn(off)).toHaveLength(routesIn(on).length - 1)
    expect(keptRouteIn(on)).toMatchObject({ metadata: { filter_metadata: expect.anything() } })
    expect(keptRouteIn(on)).toEqual(keptRouteIn(described))
    expect(keptRouteIn(off)).toBeUndefined()
  })

  test.each([
    ['without engines', redis, /Name the engines/],
    ['of two gateways without Redis', engines, /share sessions through Redis/],
    ['with sentinels but no master', [...base, '--set', 'redis.kind=sentinels'], /redis\.sentinelMaster/],
    ['with LMCache but no coordinator', [...base, '--set', 'kv.connector=lmcache'], /needs kv\.lmcacheUrl/],
    ['with slots but no volume', [...base, '--set', 'kv.connector=llamacpp-slots'], /needs kv\.existingClaim/],
    ['with one TLS secret', [...base, '--set', 'envoy.enabled=true,tls.existingSecret=a'], /Name both/],
    ['with a TLS secret for Envoy alone', [...base, '--set', 'tls.clientSecret=a'], /Name both/],
    [
      'with an off that YAML reads as false',
      [...base, '--set', 'config.sessions.implicit.names[0]=false'],
      /Quote "off"/,
    ],
    [
      'with a value that does not exist',
      [...base, '--set', 'replica=3'],
      /additional properties 'replica' not allowed/,
    ],
  ])('a release %s is refused in words', async (_name, flags, message) => {
    await expect(render(...flags)).rejects.toThrow(message)
  })

  test.each([
    ['without a token', [], 'create secret generic operators --from-literal=token='],
    [
      'with a token',
      ['--set', 'admin.tokenSecret.name=own,admin.tokenSecret.key=admin.key'],
      `get secret own -o go-template='{{index .data "admin.key" | base64decode}}'`,
    ],
  ])('its notes say how to reach the console %s', async (_name, flags, expected) => {
    const [manifests = '', notes] = (
      await run([tools().helm, 'install', 'ctx', chart, '--dry-run=client', ...base, ...flags])
    ).split('\nNOTES:\n')
    expect(notes).toContain(expected)
    // What the gateway is told to read is mounted.
    expect(manifests.includes('tokenFile: /run/secrets/admin/token')).toBe(flags.length > 0)
    expect(manifests.includes('{ secretName: own, items: [{ key: admin.key, path: token }] }')).toBe(flags.length > 0)
  })

  test('its network policies allow what a request needs, and nothing else', async () => {
    const peers =
      'networkPolicy.envoyFrom[0].podSelector.matchLabels.app=mesh,networkPolicy.adminFrom[0].podSelector.matchLabels.app=prometheus'
    const manifests = manifestsOf(await render(...base, '--set', peers))
    const policies = z.array(networkPolicy).parse(manifests.filter(({ kind }) => kind === 'NetworkPolicy'))
    const own = (component: string): Labels => ({
      'app.kubernetes.io/name': 'context-cache-gateway',
      'app.kubernetes.io/instance': 'ctx',
      'app.kubernetes.io/component': component,
    })
    const pods = {
      envoy: own('envoy'),
      gateway: own('gateway'),
      engine: { app: 'vllm' },
      mesh: { app: 'mesh' },
      prometheus: { app: 'prometheus' },
    }
    const callers = (to: Labels, ...port: readonly (string | number)[]): readonly string[] =>
      Object.entries(pods).flatMap(([name, from]) => {
        const rules = policies.filter(({ spec }) => selects(spec.podSelector, to)).flatMap(({ spec }) => spec.ingress)
        const allowed = rules.some(
          (rule) =>
            (rule.ports === undefined || rule.ports.some((one) => port.includes(one.port))) &&
            rule.from.some(({ podSelector }) => selects(podSelector, from)),
        )
        return allowed ? [name] : []
      })
    expect(callers(pods.gateway, 'grpc', 50_051)).toEqual(['envoy', 'mesh'])
    expect(callers(pods.gateway, 'admin', 9090)).toEqual(['prometheus'])
    expect(callers(pods.engine, 8000)).toEqual(['envoy', 'gateway', 'engine', 'mesh', 'prometheus'])
    // KV events, LMCache, NCCL.
    expect(callers(pods.engine, 5557)).toEqual(['envoy', 'gateway', 'engine', 'mesh'])
  })

  test('the pool of engines with data-parallel ranks has a port for each rank', async () => {
    const flags = 'inferencePool.enabled=true,inferencePool.dataParallelSize=2,engines.port=8200'
    const pool = manifestsOf(await render(...base, '--set', flags)).find(({ kind }) => kind === 'InferencePool')
    expect(pool).toMatchObject({ spec: { targetPorts: [{ number: 8200 }, { number: 8201 }] } })
  })

  test('its autoscaler reads a metric that gateways have, by the rule of docs/kubernetes.md', async () => {
    const [, metric = ''] =
      /metric: \{ name: (\w+) \}/.exec(await render(...base, '--set', 'autoscaling.enabled=true')) ?? []
    expect(Object.keys(metricDefinitions).map((name) => metricPrefix + name)).toContain(metric)
    expect(await readFile(join(root, 'docs/kubernetes.md'), 'utf8')).toContain(
      `seriesQuery: '${metric}{namespace!="",pod!=""}'`,
    )
  })

  test('kustomize renders the same', async () => {
    const source = join(root, 'deploy/kustomize')
    const byHelm = manifestsOf(await render('--values', join(source, 'values.yaml')))
    const byKustomize = manifestsOf(await run([tools().kubectl, 'kustomize', '--enable-helm', source]))
    expect(sorted(byKustomize)).toEqual(sorted(byHelm))
  })
})

const sorted = (manifests: readonly Manifest[]): readonly Manifest[] =>
  manifests.toSorted((a, b) => `${a.kind}/${a.metadata.name}`.localeCompare(`${b.kind}/${b.metadata.name}`))
