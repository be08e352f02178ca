import type { Children } from '../../playground/child-process.ts'
import { freePort } from '../../playground/free-port.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import { startGateway } from '../../playground/start-gateway.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { startServer } from '../../playground/start-server.ts'
import { answers, prints } from '../../playground/wait-until-ready.ts'
import { createNames, createResponses, createSessions } from './create-sessions.ts'
import { floorConfig, referenceConfig } from './envoy-configs.ts'
import { goProgram } from './go-programs.ts'
import {
  type GatewayKind,
  gatewayCaseNames,
  gatewayKinds,
  hasCase,
  partsOf,
  type SessionPlace,
  type Target,
  targetName,
  type Wiring,
  wirings,
} from './targets.ts'

export interface TargetOptions {
  readonly children: Children
  readonly wirings: readonly Wiring[]
  /** Worker threads of every Envoy. */
  readonly envoyWorkers: number
  /** Whether the run needs a target. */
  readonly wants: (target: string) => boolean
}

/** All that runs: the targets, and the upstream behind them, which stands in for the engines. */
export interface Targets {
  /** One of the upstream's addresses. */
  readonly upstream: string
  readonly targets: readonly Target[]
}

interface Start extends TargetOptions {
  /** Addresses of the upstream, one for each pod. */
  readonly upstream: readonly [string, string]
}

/** What stands behind an Envoy: nothing, the reference, or a gateway. */
type BackendName = 'floor' | 'go' | GatewayKind

/** It, and what it does to requests. */
interface Backend extends Pick<Target, 'arrives' | 'pids'> {
  readonly name: BackendName
  /** Where Envoy connects. */
  readonly gateway: string
}

const sessionCount = 128
const keptBytes = '2000000000'
const secret = 'a secret of the benchmark that is long enough'

/** A target to start in front of a backend. */
interface Front {
  readonly target: string
  readonly wiring: Wiring
  readonly idIn?: SessionPlace | undefined
  readonly bodyNames?: boolean | undefined
  readonly historyBytes?: number | undefined
}

/**
 * Starts an upstream with two addresses and all targets in front of it. All wirings share the gateway of a kind, and all
 * its targets with one configuration of Envoy share that.
 */
export const startTargets = async (options: TargetOptions): Promise<Targets> => {
  const start: Start = { ...options, upstream: await startUpstream(options) }
  const targets: Target[] = []
  for (const name of ['floor', 'go', ...gatewayKinds] as const) {
    const wanted = frontsOf(name, options.wirings).filter(({ target }) => options.wants(target))
    if (wanted.length === 0) continue
    const backend = await startBackend(start, name)
    const envoys = new Map<string, RunningFront>()
    for (const front of wanted) {
      const configuration = `${front.wiring} ${front.bodyNames}`
      const envoy = envoys.get(configuration) ?? (await startFront(start, front, backend))
      envoys.set(configuration, envoy)
      const { target, idIn, historyBytes } = front
      const { pids, ...rest } = envoy
      const ids = await idsFor(rest.address, front)
      const all = { ...backend.pids, ...pids }
      targets.push({ name: target, ...rest, ids, idIn, historyBytes, arrives: backend.arrives, pids: all })
    }
  }
  return { upstream: start.upstream[0], targets }
}

const frontsOf = (name: BackendName, wirings: readonly Wiring[]): readonly Front[] => {
  if (name === 'floor' || name === 'go') return [{ target: name, wiring: 'ext_proc' }]
  return wirings.flatMap((wiring) =>
    gatewayCaseNames
      .filter((candidate) => partsOf(candidate).kind === name && hasCase(wiring, candidate))
      .map((candidate) => ({ ...partsOf(candidate), target: targetName(wiring, candidate), wiring })),
  )
}

const idsFor = async (address: string, { idIn, historyBytes = 0 }: Front): Promise<readonly string[]> => {
  const url = `http://${address}`
  switch (idIn) {
    case undefined:
      return []
    case 'x-session-id':
      return createSessions(url, sessionCount)
    case 'previous_response_id':
      return createResponses(url, sessionCount, historyBytes)
    case 'session-id':
    case 'body.prompt_cache_key':
      return createNames(sessionCount)
  }
}

const startUpstream = async ({ children }: TargetOptions): Promise<Start['upstream']> => {
  const upstream = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`] as const
  const command = [goProgram('upstream'), '-listen', upstream.join()] as const
  await startServer({ name: 'upstream', command, children, ready: answers(`http://${upstream[1]}/health`) })
  return upstream
}

/** The parts that a reference leaves out of its configuration. */
const reductions: Readonly<Partial<Record<BackendName, (text: string) => string>>> = {
  floor: floorConfig,
  go: referenceConfig,
}

type RunningFront = Pick<Target, 'address' | 'adminAddress' | 'pids'>

const startFront = async (start: Start, { wiring, bodyNames }: Front, backend: Backend): Promise<RunningFront> => {
  const address = `127.0.0.1:${await freePort()}`
  // With any connector but the default one, requests without a session are forwarded unchanged.
  const connector = backend.name === 'constants' ? undefined : 'none'
  const { adminAddress, child } = await startEnvoy({
    children: start.children,
    file: wirings[wiring],
    addresses: {
      listen: address,
      pods: start.upstream,
      gateways: [backend.gateway],
      connector,
      bodyNames: bodyNames ? ['prompt_cache_key', 'session_id'] : undefined,
      keepsResponses: keepsResponses(backend.name),
    },
    change: reductions[backend.name],
    concurrency: start.envoyWorkers,
  })
  return { address, adminAddress, pids: { envoy: child.pid } }
}

const startBackend = async (start: Start, name: BackendName): Promise<Backend> => {
  if (name === 'floor') return { name, gateway: '127.0.0.1:1', arrives: 'plain', pids: {} }
  return name === 'go' ? startReference(start) : startPlugin(start, name)
}

const startReference = async ({ children }: Start): Promise<Backend> => {
  const gateway = `127.0.0.1:${await freePort()}`
  const command = [goProgram('extproc'), '-listen', gateway] as const
  const child = await startServer({ name: 'go', command, children, ready: prints(/listening/) })
  return { name: 'go', gateway, arrives: 'marked', pids: { plugin: child.pid } }
}

const keepsResponses = (name: BackendName): boolean => name === 'kept memory' || name === 'kept redis'

/** The connector `prefix-cache` splices `cache_salt` into every turn of a session, and never calls an engine. */
const startPlugin = async ({ children, upstream }: Start, name: GatewayKind): Promise<Backend> => {
  const isSpliced = name === 'spliced'
  const hasRedis = isSpliced || name === 'redis' || name === 'traced' || name === 'kept redis'
  const redis = hasRedis ? await startRedis({ children }) : undefined
  const { extproc, child } = await startGateway({
    children,
    env: {
      PATH: process.env['PATH'],
      CTX_TENANT_SECRET: secret,
      PODS: upstream.join(','),
      CONNECTOR: isSpliced ? 'prefix-cache' : 'none',
      ...(redis && { REDIS_URL: redis.url }),
      // The bench sends in minutes what a tenant sends in days.
      ...(keepsResponses(name) && {
        CTX_RESPONSES_STORE: 'true',
        CTX_RESPONSES_MAX_MEMORY_BYTES: keptBytes,
        CTX_RESPONSES_MAX_TENANT_BYTES: keptBytes,
      }),
      ...(name === 'traced' && { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${upstream[1]}` }),
    },
  })
  return {
    name,
    gateway: extproc,
    arrives: isSpliced ? 'spliced' : 'plain',
    pids: { plugin: child.pid, ...(redis && { redis: redis.child.pid }) },
  }
}
