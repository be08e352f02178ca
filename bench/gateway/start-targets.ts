import type { Children } from '../../playground/child-process.ts'
import { freePort, freePorts } from '../../playground/free-port.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import { startGateway } from '../../playground/start-gateway.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { startServer } from '../../playground/start-server.ts'
import { answers, prints } from '../../playground/wait-until-ready.ts'
import { createSessions } from './create-sessions.ts'
import { floorConfig, referenceConfig } from './envoy-configs.ts'
import type { GoPrograms } from './go-programs.ts'
import { type GatewayCase, gatewayCases, type Target, targetName, type Wiring, wirings } from './targets.ts'

export interface TargetOptions {
  readonly programs: GoPrograms
  readonly children: Children
  readonly wirings: readonly Wiring[]
  /** Worker threads of every Envoy. */
  readonly envoyWorkers: number
  /** Whether the run needs a target. */
  readonly wants: (target: string) => boolean
}

/** All that runs: the targets, and the upstream behind them, which stands in for the engines. */
export interface Targets {
  /** Addresses of the upstream, one for each pod. */
  readonly upstream: readonly string[]
  readonly targets: readonly Target[]
}

interface Start extends TargetOptions {
  readonly upstream: readonly string[]
}

/** What stands behind an Envoy, and what it does to requests. */
interface Backend extends Pick<Target, 'arrives' | 'pids'> {
  /** Where Envoy connects. */
  readonly gateway: string
  readonly hasSessions: boolean
}

/** An Envoy in front of a backend. */
interface Front {
  readonly name: string
  readonly wiring: Wiring
  /** Requests without a session get the constants of envoy.yaml. Default: they are forwarded unchanged. */
  readonly hasConstants?: boolean
  /** Leaves parts of its configuration out. */
  readonly reduce?: (text: string) => string
}

const sessionCount = 128
const secret = 'a secret of the benchmark that is long enough'

/** Starts an upstream with two addresses and all targets in front of it. Both wirings use the same gateway process for a case. */
export const startTargets = async (options: TargetOptions): Promise<Targets> => {
  const start: Start = { ...options, upstream: await startUpstream(options) }
  const backends: readonly { readonly open: () => Promise<Backend>; readonly fronts: readonly Front[] }[] = [
    { open: async () => noBackend, fronts: [{ name: 'floor', wiring: 'ext_proc', reduce: floorConfig }] },
    { open: () => startReference(start), fronts: [{ name: 'go', wiring: 'ext_proc', reduce: referenceConfig }] },
    ...gatewayCases.map((gatewayCase) => ({
      open: () => startPlugin(start, gatewayCase),
      fronts: options.wirings.map((wiring) => ({
        name: targetName(wiring, gatewayCase),
        wiring,
        hasConstants: gatewayCase === 'constants',
      })),
    })),
  ]
  const targets: Target[] = []
  for (const { open, fronts } of backends) {
    const wanted = fronts.filter(({ name }) => options.wants(name))
    if (wanted.length === 0) continue
    const backend = await open()
    for (const front of wanted) targets.push(await startFront(start, front, backend))
  }
  return { upstream: start.upstream, targets }
}

const startUpstream = async ({ programs, children }: TargetOptions): Promise<readonly string[]> => {
  const [first, second] = (await freePorts(2)).map((port) => `127.0.0.1:${port}`)
  const command = [programs.upstream, '-listen', `${first},${second}`] as const
  await startServer({ name: 'upstream', command, children, ready: answers(`http://${second}/health`) })
  return [`${first}`, `${second}`]
}

const startFront = async (start: Start, front: Front, backend: Backend): Promise<Target> => {
  const { name, wiring, hasConstants = false, reduce } = front
  const { gateway, hasSessions, arrives, pids } = backend
  const address = `127.0.0.1:${await freePort()}`
  const connector = hasConstants ? undefined : 'none'
  const envoy = await startEnvoy({
    children: start.children,
    file: wirings[wiring],
    addresses: { listen: address, pods: start.upstream, gateways: [gateway], connector },
    change: reduce,
    concurrency: start.envoyWorkers,
  })
  const ids = hasSessions ? await createSessions(`http://${address}`, sessionCount) : []
  const { adminAddress, child } = envoy
  return { name, address, adminAddress, ids, arrives, pids: { ...pids, envoy: child.pid } }
}

const noBackend: Backend = { gateway: '127.0.0.1:1', hasSessions: false, arrives: 'plain', pids: {} }

const startReference = async ({ programs, children }: Start): Promise<Backend> => {
  const gateway = `127.0.0.1:${await freePort()}`
  const command = [programs.extproc, '-listen', gateway] as const
  const child = await startServer({ name: 'go', command, children, ready: prints(/listening/) })
  return { gateway, hasSessions: false, arrives: 'marked', pids: { plugin: child.pid } }
}

/** The connector `prefix-cache` splices `cache_salt` into every turn of a session, and never calls an engine. */
const startPlugin = async ({ children, upstream }: Start, name: GatewayCase): Promise<Backend> => {
  const isSpliced = name === 'spliced'
  const hasRedis = isSpliced || name === 'redis'
  const redis = hasRedis ? await startRedis({ children }) : undefined
  const { extproc, child } = await startGateway({
    children,
    env: {
      PATH: process.env['PATH'],
      CTX_TENANT_SECRET: secret,
      PODS: upstream.join(','),
      CONNECTOR: isSpliced ? 'prefix-cache' : 'none',
      ...(redis && { REDIS_URL: redis.url }),
    },
  })
  return {
    gateway: extproc,
    hasSessions: name !== 'no session' && name !== 'constants',
    arrives: isSpliced ? 'spliced' : 'plain',
    pids: { plugin: child.pid, ...(redis && { redis: redis.child.pid }) },
  }
}
