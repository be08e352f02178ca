import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ManagedChild } from '../../../playground/child-process.ts'
import { freePort, freePorts } from '../../../playground/free-port.ts'
import { type RunningEngine, startEngine } from '../../../playground/start-engine.ts'
import { type RunningEnvoy, startEnvoy } from '../../../playground/start-envoy.ts'
import { type RunningGateway, startGateway } from '../../../playground/start-gateway.ts'
import { type RunningRedis, type StartRedisOptions, startRedis } from '../../../playground/start-redis.ts'

/** An engine process of a stack, embedded or foreign. */
export interface StackPod {
  /** `127.0.0.1:8080`, as Envoy and the gateway name it. */
  readonly address: string
  /** The process that runs now. */
  readonly child?: ManagedChild
  /** Starts the process again on its port, after its end. */
  startAgain?(): Promise<void>
  /** Ends a pod that is no process, or not always the same one. */
  stop?(): Promise<void>
}

export interface StackOptions {
  /** Default: memory. */
  readonly store?: 'memory' | 'redis'
  readonly redis?: Pick<StartRedisOptions, 'appendOnly'>
  /** Gateway processes behind the one Envoy. Default: 1. */
  readonly gateways?: number
  /** Default: two pods of the embedded engine that share one folder. The function gets that folder. */
  readonly pods?: (kvDirectory: string) => Promise<readonly StackPod[]>
  /** Further configuration of the gateways, by their environment variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Default: by the environment. */
  readonly wiring?: Wiring
  /** Changes the repository's configuration of Envoy for this stack. */
  readonly envoyConfig?: (text: string) => string
  /** How long Envoy waits for a gateway: as the repository has it, or (default) a minute, also for a busy machine. */
  readonly envoyWaits?: 'as-configured'
  /** Members of request bodies that may name a conversation. Default: none. */
  readonly bodyNames?: readonly string[]
}

/** Real Envoy with the repository's own envoy.yaml, real gateways, real engines, and Redis where asked for. */
export interface Stack {
  /** `http://127.0.0.1:PORT`, where clients connect. */
  readonly url: string
  readonly port: number
  readonly envoy: RunningEnvoy
  readonly pods: readonly StackPod[]
  readonly kvDirectory: string
  readonly redis: RunningRedis | undefined
  /** The gateway of this index that runs now. */
  gateway(index?: number): RunningGateway
  /** Starts a gateway again on its port, after its end. `env`: changes of its configuration. */
  restartGateway(index?: number, env?: Readonly<Record<string, string>>): Promise<RunningGateway>
  /** Starts Redis again on its port and in its folder, after its end. */
  restartRedis(): Promise<RunningRedis>
  /** Names of the KV files in the store. */
  kvFiles(): Promise<readonly string[]>
  /** Everything that any process of this stack printed. */
  output(): string
  stop(): Promise<void>
}

/** Pods of the embedded engine that share the folder. */
export const embeddedPods =
  (
    options: {
      readonly count?: number
      readonly slots?: number
      /** Default: 4,096. */
      readonly contextTokensPerSlot?: number
      readonly arguments?: readonly string[]
    } = {},
  ) =>
  (kvDirectory: string): Promise<readonly StackPod[]> => {
    const start = async (index: number): Promise<StackPod> => {
      const port = await freePort()
      const launch = (): Promise<RunningEngine> =>
        startEngine({
          name: `pod-${index}`,
          kvDirectory,
          port,
          slots: options.slots ?? 4,
          contextTokensPerSlot: options.contextTokensPerSlot ?? 4096,
          extraArguments: ['--log-level', 'warn', ...(options.arguments ?? [])],
        })
      let engine = await launch()
      return {
        address: engine.address,
        get child() {
          return engine.child
        },
        startAgain: async () => {
          engine = await launch()
        },
        stop: async () => void (await engine.child.stop()),
      }
    }
    return Promise.all(Array.from({ length: options.count ?? 2 }, (_, index) => start(index)))
  }

const configFiles = {
  lua: 'envoy.yaml',
  picker: 'deploy/envoy/picker.yaml',
} as const

type Wiring = keyof typeof configFiles

/** How Envoy is wired to the gateway: `make test-picker` runs the same tests otherwise. */
export const wiring: Wiring = process.env['PICKER'] === '1' ? 'picker' : 'lua'

const secret = 'a secret of the integration tests that is long enough'

export const startStack = async (options: StackOptions = {}): Promise<Stack> => {
  const root = await mkdtemp(join(tmpdir(), 'context-cache-'))
  const kvDirectory = join(root, 'kv')
  const children: ManagedChild[] = []
  let pods: readonly StackPod[] = []
  const lines: string[] = []
  const onLine = (line: string): void => void lines.push(line)
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()))
    await Promise.all(pods.map(async (pod) => pod.stop?.()))
    await rm(root, { recursive: true, force: true })
  }
  try {
    const launchRedis = async (port?: number): Promise<RunningRedis> => {
      const started = await startRedis({ ...options.redis, dir: join(root, 'redis'), port })
      children.push(started.child)
      return started
    }
    await mkdir(kvDirectory)
    const launchPods = options.pods ?? embeddedPods()
    let redis: RunningRedis | undefined
    ;[redis, pods] = await Promise.all([options.store === 'redis' ? launchRedis() : undefined, launchPods(kvDirectory)])
    children.push(...pods.flatMap((pod) => (pod.child === undefined ? [] : [pod.child])))

    const gatewayCount = options.gateways ?? 1
    const [clientPort = 0, ...extprocPorts] = await freePorts(1 + gatewayCount)
    const gateways: RunningGateway[] = []
    const launch = async (index: number, env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> => {
      const gateway = await startGateway({
        extprocPort: extprocPorts[index],
        env: {
          PATH: process.env['PATH'],
          NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
          CTX_TENANT_SECRET: secret,
          CTX_LOG_LEVEL: 'debug',
          CTX_REAPER_INTERVAL_MS: '100',
          // A load is worthwhile however long it takes on a busy machine, until a turn computes 128 tokens and more.
          CTX_KV_PREFILL_MS_PER_TOKEN: '1000',
          // A scripted pod is part of the test's process, and answers a check late.
          CTX_ROUTING_HEALTH_TIMEOUT_MS: '30000',
          // So does Redis on a busy machine.
          CTX_SESSIONS_COMMAND_TIMEOUT_MS: '10000',
          PODS: pods.map((pod) => pod.address).join(','),
          KV_DIR: kvDirectory,
          ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
          ...options.env,
          ...env,
        },
        onLine,
      })
      children.push(gateway.child)
      gateways[index] = gateway
      return gateway
    }
    await Promise.all(Array.from({ length: gatewayCount }, (_, index) => launch(index)))

    const envoy = await startEnvoy({
      file: configFiles[options.wiring ?? wiring],
      addresses: {
        listen: `127.0.0.1:${clientPort}`,
        pods: pods.map((pod) => pod.address),
        gateways: gateways.map((gateway) => gateway.extproc),
        connector: options.env?.['CONNECTOR'],
        bodyNames: options.bodyNames,
        keepsResponses: options.env?.['CTX_RESPONSES_STORE'] === 'true',
      },
      change: (text) => {
        const patient = options.envoyWaits === undefined ? text.replaceAll(/timeout: [125]s/g, 'timeout: 60s') : text
        return options.envoyConfig?.(patient) ?? patient
      },
      concurrency: 1,
      onLine,
    })
    children.push(envoy.child)
    return {
      url: `http://127.0.0.1:${clientPort}`,
      port: clientPort,
      envoy,
      pods,
      kvDirectory,
      get redis() {
        return redis
      },
      gateway: (index = 0) => {
        const gateway = gateways[index]
        if (gateway === undefined) throw new Error(`there is no gateway ${index}`)
        return gateway
      },
      restartGateway: (index = 0, env = {}) => launch(index, env),
      restartRedis: async () => {
        redis = await launchRedis(redis?.port)
        return redis
      },
      kvFiles: async () => (await readdir(kvDirectory).catch(() => [])).filter((name) => name.startsWith('ctx-')),
      output: () => lines.join('\n'),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
