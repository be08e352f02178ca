import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from '../../playground/child-process.ts'
import { renderEnvoyConfig } from '../../playground/envoy-config.ts'
import { freePort, freePorts } from '../../playground/free-port.ts'
import { findEnvoy } from '../../playground/install/find-envoy.ts'
import { findRedis } from '../../playground/install/find-redis.ts'
import type { ServerTool } from '../../playground/install/find-tool.ts'
import { packageRoot, toolsDir } from '../../playground/paths.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import { startGateway } from '../../playground/start-gateway.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { readyOrKilled } from '../../playground/wait-until-ready.ts'
import { createBenchSessions } from './bench-sessions.ts'
import type { Children } from './children.ts'
import { floorConfig, referenceConfig } from './envoy-configs.ts'
import type { GoPrograms } from './go-programs.ts'
import {
  type GatewayCase,
  gatewayCases,
  type Target,
  targetName,
  type Upstream,
  type Wiring,
  wirings,
} from './targets.ts'

export interface TargetOptions {
  readonly programs: GoPrograms
  readonly children: Children
  /** Of this run alone. */
  readonly directory: string
  readonly wirings: readonly Wiring[]
  /** Worker threads of every Envoy. */
  readonly envoyWorkers: number
  /** Whether the run needs a target. */
  readonly wants: (target: string) => boolean
}

interface Start extends TargetOptions {
  readonly upstream: Upstream
  readonly envoyTool: ServerTool
}

/** The process behind an Envoy, and what it does to requests. */
interface Backend extends Pick<Target, 'arrives' | 'pluginPid' | 'redisPid'> {
  /** Where Envoy connects. */
  readonly gateway: string
}

const sessionCount = 128
const pods = 2
const secret = 'a secret of the benchmark that is long enough'

/** Starts an upstream with two addresses and all targets in front of it. Both wirings use the same gateway process for a case. */
export const startTargets = async (
  options: TargetOptions,
): Promise<{ readonly upstream: Upstream; readonly targets: readonly Target[]; readonly envoyVersion: string }> => {
  const report = (line: string): void => void process.stderr.write(`${line}\n`)
  const envoyTool = await findEnvoy({ env: process.env, toolsDir: toolsDir(), report })
  const upstream = await startUpstream(options)
  const start: Start = { ...options, upstream, envoyTool }
  const targets: Target[] = []
  const template = await readFile(join(packageRoot(), wirings.ext_proc), 'utf8')
  if (options.wants('floor')) {
    const backend: Backend = { gateway: '127.0.0.1:1', arrives: 'plain', pluginPid: undefined, redisPid: undefined }
    targets.push(await startFront(start, { name: 'floor', template, reduce: floorConfig, backend }))
  }
  if (options.wants('go')) {
    const backend = await startReference(start)
    targets.push(await startFront(start, { name: 'go', template, reduce: referenceConfig, backend }))
  }
  for (const name of gatewayCases) {
    const wanted = options.wirings.filter((wiring) => options.wants(targetName(wiring, name)))
    if (wanted.length === 0) continue
    const backend = await startPlugin(start, name)
    for (const wiring of wanted) {
      const wired = await readFile(join(packageRoot(), wirings[wiring]), 'utf8')
      const target = await startFront(start, { name: targetName(wiring, name), template: wired, backend })
      targets.push(name === 'no session' ? target : await withSessions(start, target))
    }
  }
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

interface Front {
  readonly name: string
  /** An Envoy configuration of the package. */
  readonly template: string
  /** Leaves parts of the configuration out. */
  readonly reduce?: (text: string) => string
  readonly backend: Backend
}

const startFront = async (
  { upstream, envoyTool, children, envoyWorkers }: Start,
  { name, template, reduce = (text) => text, backend }: Front,
): Promise<Target> => {
  const address = `127.0.0.1:${await freePort()}`
  const { gateway, ...rest } = backend
  const addresses = { listen: address, admin: '127.0.0.1:0', pods: upstream.addresses, gateways: [gateway] }
  const { child, adminAddress } = await startEnvoy({
    tool: envoyTool,
    config: { text: reduce(renderEnvoyConfig(template, addresses)) },
    concurrency: envoyWorkers,
    logLevel: 'error',
    cwd: packageRoot(),
  })
  children.add(child)
  return { name, address, adminAddress, envoyPid: child.pid, idsFile: undefined, ...rest }
}

const startReference = async (start: Start): Promise<Backend> => {
  const port = await freePort()
  const gateway = `127.0.0.1:${port}`
  const child = await startChild({ name: 'go', command: [start.programs.extproc, '-listen', gateway] })
  start.children.add(child)
  await readyOrKilled(child, { kind: 'tcp', port })
  return { gateway, arrives: 'marked', pluginPid: child.pid, redisPid: undefined }
}

/**
 * The connector `warmup` splices `cache_salt` into every turn of a session, and asks an engine only for the start time of its process, every two
 * seconds.
 */
const startPlugin = async (start: Start, name: GatewayCase): Promise<Backend> => {
  const isSpliced = name === 'spliced'
  const redis = isSpliced || name === 'redis' ? await startOwnRedis(start, name) : undefined
  const { extproc, child } = await startGateway({
    env: {
      PATH: process.env['PATH'],
      CTX_TENANT_SECRET: secret,
      PODS: start.upstream.addresses.join(','),
      CONNECTOR: isSpliced ? 'warmup' : 'none',
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
    },
  })
  start.children.add(child)
  return {
    gateway: extproc,
    arrives: isSpliced ? 'spliced' : 'plain',
    pluginPid: child.pid,
    redisPid: redis?.child.pid,
  }
}

const startOwnRedis = async ({ children, directory }: Start, name: string) => {
  const tool = await findRedis({ env: process.env, toolsDir: toolsDir() })
  const redis = await startRedis({ tool, dir: join(directory, `redis-${name}`) })
  children.add(redis.child)
  return redis
}

const withSessions = async ({ directory }: Start, target: Target): Promise<Target> => {
  const idsFile = join(directory, `${target.name.replaceAll(' ', '-')}.ids`)
  await createBenchSessions({ url: `http://${target.address}`, count: sessionCount, file: idsFile })
  return { ...target, idsFile }
}
