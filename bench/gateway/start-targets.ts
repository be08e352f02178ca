import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startChild } from '../../playground/child-process.ts'
import { renderEnvoyConfig } from '../../playground/envoy-config.ts'
import { freePort, freePorts } from '../../playground/free-port.ts'
import { findEnvoy } from '../../playground/install/find-envoy.ts'
import { findRedis } from '../../playground/install/find-redis.ts'
import { requireTool, type ServerTool } from '../../playground/install/find-tool.ts'
import { packageRoot, toolsDir } from '../../playground/paths.ts'
import { startGateway } from '../../playground/start-gateway.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { readyOrKilled } from '../../playground/wait-until-ready.ts'
import { createBenchSessions } from './bench-sessions.ts'
import { floorConfig, referenceConfig } from './envoy-configs.ts'
import type { GoPrograms } from './go-programs.ts'
import { type Front, type FrontOptions, startFronts } from './start-fronts.ts'
import { type GatewayTargetName, type GatewayVariant, type Target, targetName, type Upstream } from './targets.ts'

export interface TargetOptions extends Omit<FrontOptions, 'envoyTool'> {
  readonly programs: GoPrograms
  /** Of this run alone. */
  readonly directory: string
  readonly variants: readonly GatewayVariant[]
  /** Which targets are wanted at all. */
  readonly wants: (target: string) => boolean
  /** Where gateways can be told to write CPU profiles; undefined: they cannot. */
  readonly profileDirectory: string | undefined
}

const sessionCount = 128
const pods = 2
const secret = 'a secret of the benchmark that is long enough'

/** What is behind a front, before there is an Envoy. */
interface Backend extends Pick<Target, 'name' | 'arrives' | 'pluginPid' | 'redisPid'> {
  readonly front: Front
  readonly hasSessions: boolean
}

interface Start extends TargetOptions {
  readonly upstream: Upstream
  /** The repository's envoy.yaml. */
  readonly template: string
}

/** An upstream with two addresses, and what stands in front of it for every target, all at once. */
export const startTargets = async (
  options: TargetOptions,
): Promise<{ readonly upstream: Upstream; readonly targets: readonly Target[]; readonly envoyVersion: string }> => {
  const tools = {
    env: process.env,
    toolsDir: toolsDir(),
    report: (line: string) => void process.stderr.write(`${line}\n`),
  }
  const envoyTool = requireTool(await findEnvoy(tools))
  const upstream = await startUpstream(options)
  const template = await readFile(join(packageRoot(), 'envoy.yaml'), 'utf8')
  const start: Start = { ...options, upstream, template }
  const backends: Backend[] = []
  if (options.wants('floor')) backends.push(await startFloor(start))
  if (options.wants('go')) backends.push(await startReference(start))
  for (const variant of options.variants) {
    const wants = (name: GatewayTargetName): boolean => options.wants(targetName(name, variant))
    if (wants('memory') || wants('no session')) backends.push(...(await startMemory(start, variant)))
    for (const name of ['redis', 'redis, spliced'] as const) {
      if (!wants(name)) continue
      const redisTool = requireTool(await findRedis(tools))
      backends.push(await startWithRedis(start, { variant, name, redisTool }))
    }
  }
  const pidOf = await startFronts([...new Set(backends.map(({ front }) => front))], { ...options, envoyTool })
  const targets: Target[] = []
  for (const backend of backends) targets.push(await toTarget(start, backend, pidOf(backend.front)))
  return { upstream, targets, envoyVersion: envoyTool.version }
}

const startUpstream = async ({ programs, children }: TargetOptions): Promise<Upstream> => {
  const ports = await freePorts(pods)
  const addresses = ports.map((port) => `127.0.0.1:${port}`)
  const child = await startChild({ name: 'upstream', command: [programs.upstream, '-listen', addresses.join(',')] })
  children.add(child)
  for (const port of ports) await readyOrKilled(child, { kind: 'tcp', port })
  return { addresses, pid: child.pid }
}

const frontOf = async (
  { upstream }: Start,
  { name, config, gateway }: { readonly name: string; readonly config: string; readonly gateway: string },
): Promise<Front> => {
  const address = `127.0.0.1:${await freePort()}`
  const addresses = { listen: address, admin: '127.0.0.1:0', pods: upstream.addresses, gateways: [gateway] }
  return { name, address, text: renderEnvoyConfig(config, addresses) }
}

const startFloor = async (start: Start): Promise<Backend> => ({
  name: 'floor',
  front: await frontOf(start, { name: 'floor', config: floorConfig(start.template), gateway: '127.0.0.1:1' }),
  hasSessions: false,
  arrives: 'plain',
  pluginPid: undefined,
  redisPid: undefined,
})

const startReference = async (start: Start): Promise<Backend> => {
  const port = await freePort()
  const gateway = `127.0.0.1:${port}`
  const child = await startChild({ name: 'go', command: [start.programs.extproc, '-listen', gateway] })
  start.children.add(child)
  await readyOrKilled(child, { kind: 'tcp', port })
  const front = await frontOf(start, { name: 'go', config: referenceConfig(start.template), gateway })
  return { name: 'go', front, hasSessions: false, arrives: 'marked', pluginPid: child.pid, redisPid: undefined }
}

const startPlugin = async (
  start: Start,
  target: { readonly name: string; readonly variant: GatewayVariant; readonly env: Readonly<Record<string, string>> },
) => {
  const preload = fileURLToPath(new URL('profile-preload.js', import.meta.url))
  const profiling =
    start.profileDirectory === undefined
      ? {}
      : { NODE_OPTIONS: `--import=${preload}`, BENCH_PROFILE_DIR: start.profileDirectory }
  const gateway = await startGateway({
    env: {
      PATH: process.env['PATH'],
      CTX_TENANT_SECRET: secret,
      PODS: start.upstream.addresses.join(','),
      ...profiling,
      ...target.env,
      ...target.variant.env,
    },
  })
  start.children.add(gateway.child)
  const front = await frontOf(start, { name: target.name, config: start.template, gateway: gateway.extproc })
  return { front, pluginPid: gateway.child.pid }
}

/** One gateway, two targets: requests with a session and without. */
const startMemory = async (start: Start, variant: GatewayVariant): Promise<readonly Backend[]> => {
  const name = targetName('memory', variant)
  const plugin = await startPlugin(start, { name, variant, env: { CONNECTOR: 'none' } })
  const common = { ...plugin, arrives: 'plain', redisPid: undefined } as const
  return [
    { ...common, name, hasSessions: true },
    { ...common, name: targetName('no session', variant), hasSessions: false },
  ]
}

/**
 * With a field to splice the connector is `warmup`: it splices `cache_salt` into every turn of a session, and asks of an engine only
 * when its process was started, every two seconds.
 */
const startWithRedis = async (
  start: Start,
  options: {
    readonly variant: GatewayVariant
    readonly name: 'redis' | 'redis, spliced'
    readonly redisTool: ServerTool
  },
): Promise<Backend> => {
  const { variant, redisTool } = options
  const name = targetName(options.name, variant)
  const redis = await startRedis({ tool: redisTool, dir: join(start.directory, fileNameOf(name)) })
  start.children.add(redis.child)
  const isSpliced = options.name === 'redis, spliced'
  const env = { CONNECTOR: isSpliced ? 'warmup' : 'none', REDIS_URL: redis.url }
  const plugin = await startPlugin(start, { name, variant, env })
  return {
    name,
    ...plugin,
    hasSessions: true,
    arrives: isSpliced ? 'spliced' : 'plain',
    redisPid: redis.child.pid,
  }
}

const toTarget = async (start: Start, backend: Backend, envoyPid: number): Promise<Target> => {
  const { front, hasSessions, ...rest } = backend
  const target = { ...rest, address: front.address, envoyPid, idsFile: undefined }
  if (!hasSessions) return target
  const idsFile = join(start.directory, `${fileNameOf(target.name)}.ids`)
  await createBenchSessions({ url: `http://${target.address}`, count: sessionCount, file: idsFile })
  return { ...target, idsFile }
}

const fileNameOf = (target: string): string => target.replaceAll(/\W+/g, '-')
