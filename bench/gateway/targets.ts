import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startChild } from '../../src/launcher/child-process.ts'
import { renderEnvoyConfig } from '../../src/launcher/envoy-config.ts'
import { findEnvoy } from '../../src/launcher/find-envoy.ts'
import { findRedis } from '../../src/launcher/find-redis.ts'
import { freePort, freePorts } from '../../src/launcher/free-port.ts'
import { type Command, requireTool, type ServerTool } from '../../src/launcher/server-tool.ts'
import { startEnvoy } from '../../src/launcher/start-envoy.ts'
import { startGateway } from '../../src/launcher/start-gateway.ts'
import { startRedis } from '../../src/launcher/start-redis.ts'
import { packageRoot, toolsDir } from '../../src/launcher/tools-dir.ts'
import { readyOrKilled } from '../../src/launcher/wait-until-ready.ts'
import { createBenchSessions } from './bench-sessions.ts'
import type { Children } from './children.ts'
import { floorConfig, referenceConfig } from './envoy-configs.ts'
import type { GoPrograms } from './go-programs.ts'

/** A way that requests go through an Envoy, with what is behind it. */
export interface Target {
  readonly name: string
  /** `127.0.0.1:8000` */
  readonly address: string
  readonly idsFile: string | undefined
  /** What every request has to be when it reaches the upstream, so that none goes past what is measured. */
  readonly arrives: 'plain' | 'marked' | 'spliced'
  readonly envoyPid: number
  /** The external processor. */
  readonly pluginPid: number | undefined
  readonly redisPid: number | undefined
}

/** A gateway to measure, beside others with another configuration. */
export interface GatewayVariant {
  /** Empty for the gateway as it is by default. */
  readonly name: string
  readonly env: Readonly<Record<string, string>>
}

export interface Upstream {
  readonly addresses: readonly string[]
  readonly pid: number
}

/** The gateway's own targets, before a variant's name is put behind them. */
export const gatewayTargetNames = ['no session', 'memory', 'redis', 'redis, spliced'] as const
export type GatewayTargetName = (typeof gatewayTargetNames)[number]

export const targetName = (name: GatewayTargetName, variant: GatewayVariant): string =>
  variant.name === '' ? name : `${name} [${variant.name}]`

export interface TargetOptions {
  readonly programs: GoPrograms
  readonly children: Children
  /** Of this run alone. */
  readonly directory: string
  readonly variants: readonly GatewayVariant[]
  /** Which targets are wanted at all. */
  readonly wants: (target: string) => boolean
  /** Where gateways can be told to write CPU profiles; undefined: they cannot. */
  readonly profileDirectory: string | undefined
  /** Worker threads of every Envoy. */
  readonly envoyWorkers: number
  /** What to start instead of Envoy. Default: Envoy. */
  readonly wrapEnvoy?: (command: Command) => Command
}

/** Also for one that callgrind watches. */
const envoyReadyTimeoutMs = 120_000
const sessionCount = 128
const pods = 2
const secret = 'a secret of the benchmark that is long enough'

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
  const start: Start = { ...options, envoyTool, upstream, template }
  const targets: Target[] = []
  if (options.wants('floor')) targets.push(await startFloor(start))
  if (options.wants('go')) targets.push(await startReference(start))
  for (const variant of options.variants) {
    const wants = (name: GatewayTargetName): boolean => options.wants(targetName(name, variant))
    if (wants('memory') || wants('no session')) targets.push(...(await startMemory(start, variant)))
    for (const name of ['redis', 'redis, spliced'] as const) {
      if (!wants(name)) continue
      const redisTool = requireTool(await findRedis(tools))
      targets.push(await startWithRedis(start, { variant, name, redisTool }))
    }
  }
  return { upstream, targets, envoyVersion: envoyTool.version }
}

/** The target of a measurement. @throws Error when it was not started */
export const targetOf = (wanted: { readonly target: string }, targets: readonly Target[]): Target => {
  const found = targets.find(({ name }) => name === wanted.target)
  if (found === undefined) throw new Error(`there is no target ${wanted.target}`)
  return found
}

interface Start extends TargetOptions {
  readonly envoyTool: ServerTool
  readonly upstream: Upstream
  /** The repository's envoy.yaml. */
  readonly template: string
}

const startUpstream = async ({ programs, children }: TargetOptions): Promise<Upstream> => {
  const ports = await freePorts(pods)
  const addresses = ports.map((port) => `127.0.0.1:${port}`)
  const child = await startChild({ name: 'upstream', command: [programs.upstream, '-listen', addresses.join(',')] })
  children.add(child)
  for (const port of ports) await readyOrKilled(child, { kind: 'tcp', port })
  return { addresses, pid: child.pid }
}

const startFront = async (start: Start, options: { readonly config: string; readonly gateway: string }) => {
  const listen = `127.0.0.1:${await freePort()}`
  const { envoyTool: tool, wrapEnvoy } = start
  const envoy = await startEnvoy({
    tool: wrapEnvoy === undefined ? tool : { ...tool, command: wrapEnvoy(tool.command) },
    readyTimeoutMs: envoyReadyTimeoutMs,
    config: {
      text: renderEnvoyConfig(options.config, {
        listen,
        admin: '127.0.0.1:0',
        pods: start.upstream.addresses,
        gateways: [options.gateway],
      }),
    },
    concurrency: start.envoyWorkers,
    logLevel: 'error',
  })
  start.children.add(envoy.child)
  return { address: listen, envoyPid: envoy.child.pid }
}

const startFloor = async (start: Start): Promise<Target> => {
  const front = await startFront(start, { config: floorConfig(start.template), gateway: '127.0.0.1:1' })
  return { name: 'floor', ...front, idsFile: undefined, arrives: 'plain', pluginPid: undefined, redisPid: undefined }
}

const startReference = async (start: Start): Promise<Target> => {
  const port = await freePort()
  const gateway = `127.0.0.1:${port}`
  const child = await startChild({ name: 'go', command: [start.programs.extproc, '-listen', gateway] })
  start.children.add(child)
  await readyOrKilled(child, { kind: 'tcp', port })
  const front = await startFront(start, { config: referenceConfig(start.template), gateway })
  return { name: 'go', ...front, idsFile: undefined, arrives: 'marked', pluginPid: child.pid, redisPid: undefined }
}

const startPlugin = async (start: Start, variant: GatewayVariant, env: Readonly<Record<string, string>>) => {
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
      ...env,
      ...variant.env,
    },
  })
  start.children.add(gateway.child)
  const front = await startFront(start, { config: start.template, gateway: gateway.extproc })
  return { ...front, pluginPid: gateway.child.pid }
}

const withSessions = async (start: Start, target: Omit<Target, 'idsFile'>): Promise<Target> => {
  const idsFile = join(start.directory, `${target.name.replaceAll(/\W+/g, '-')}.ids`)
  await createBenchSessions({ url: `http://${target.address}`, count: sessionCount, file: idsFile })
  return { ...target, idsFile }
}

/** One gateway, two targets: requests with a session and without. */
const startMemory = async (start: Start, variant: GatewayVariant): Promise<readonly Target[]> => {
  const plugin = await startPlugin(start, variant, { CONNECTOR: 'none' })
  const common = { ...plugin, arrives: 'plain', redisPid: undefined } as const
  const withoutSession = { ...common, name: targetName('no session', variant), idsFile: undefined }
  return [await withSessions(start, { ...common, name: targetName('memory', variant) }), withoutSession]
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
): Promise<Target> => {
  const name = targetName(options.name, options.variant)
  const directory = join(start.directory, name.replaceAll(/\W+/g, '-'))
  const redis = await startRedis({ tool: options.redisTool, dir: directory })
  start.children.add(redis.child)
  const isSpliced = options.name === 'redis, spliced'
  const plugin = await startPlugin(start, options.variant, {
    CONNECTOR: isSpliced ? 'warmup' : 'none',
    REDIS_URL: redis.url,
  })
  return withSessions(start, { name, ...plugin, arrives: isSpliced ? 'spliced' : 'plain', redisPid: redis.child.pid })
}
