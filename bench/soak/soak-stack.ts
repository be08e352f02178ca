import { mkdir, readdir } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import type { Children, ManagedChild } from '../../playground/child-process.ts'
import { freePorts } from '../../playground/free-port.ts'
import { type RunningEngine, type StartEngineOptions, startEngine } from '../../playground/start-engine.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import { startGateway } from '../../playground/start-gateway.ts'
import { startRedis } from '../../playground/start-redis.ts'

/** A process of the soak, which can end and be started again on its port. */
export interface SoakProcess {
  readonly name: string
  child(): ManagedChild
  startAgain(): Promise<void>
}

/** Envoy, two gateways, three pods of two slots, and a Redis that keeps what it has answered. */
export interface SoakStack {
  /** Where clients connect. */
  readonly url: string
  readonly model: string
  readonly redisUrl: string
  readonly envoy: ManagedChild
  readonly redis: SoakProcess
  readonly gateways: readonly [SoakProcess, SoakProcess]
  readonly adminUrls: readonly string[]
  /** Of the first gateway. */
  readonly inspectorPort: number
  readonly pods: readonly SoakProcess[]
  /** Names of the KV files in the store. */
  kvFiles(): Promise<readonly string[]>
}

const podCount = 3
/** Engines have processors of their own. Here they would keep Redis from answering. */
const podPriority = 10
const model = 'soak'
const secret = 'a secret of the soak that is long enough to be one'
/** A turn whose end is lost is over by then, and so is what it held. */
export const leaseSeconds = 30
/** Until then an ended session is known. */
export const tombstoneSeconds = 5

const startYielding = async (options: StartEngineOptions): Promise<RunningEngine> => {
  const engine = await startEngine(options)
  setPriority(engine.child.pid, podPriority)
  return engine
}

export const startSoakStack = async (children: Children, folder: string): Promise<SoakStack> => {
  const kvDirectory = join(folder, 'kv')
  await mkdir(kvDirectory)
  const ports = await freePorts(1 + 1 + 4 + podCount + 1)
  const port = (index: number): number => ports[index] ?? 0
  const inspectorPort = port(6 + podCount)
  const processOf = async (name: string, start: () => Promise<{ readonly child: ManagedChild }>) => {
    let { child } = await start()
    const startAgain = async (): Promise<void> => {
      child = (await start()).child
    }
    return { name, child: () => child, startAgain }
  }
  const redis = await processOf('redis', () =>
    startRedis({ children, port: port(1), dir: join(folder, 'redis'), appendOnly: true }),
  )
  const pods = await Promise.all(
    Array.from({ length: podCount }, (_, index) =>
      processOf(`pod ${index}`, () =>
        startYielding({
          children,
          name: `pod-${index}`,
          port: port(6 + index),
          kvDirectory,
          slots: 2,
          contextTokensPerSlot: 8192,
          vocabulary: 'words',
          modelNames: [model],
          extraArguments: ['--log-level', 'warn'],
        }),
      ),
    ),
  )
  const podAddresses = pods.map((_, index) => `127.0.0.1:${port(6 + index)}`)
  const redisUrl = `redis://127.0.0.1:${port(1)}`
  const gateway = (index: number) =>
    processOf(`gateway ${index}`, () =>
      startGateway({
        children,
        extprocPort: port(2 + index),
        adminPort: port(4 + index),
        env: {
          PATH: process.env['PATH'],
          ...(index === 0 ? { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` } : {}),
          CTX_TENANT_SECRET: secret,
          CTX_LOG_LEVEL: 'error',
          CTX_REAPER_INTERVAL_MS: '500',
          CTX_REAPER_ANNOUNCE_GRACE_MS: '15000',
          CTX_SESSIONS_TOMBSTONE_SECONDS: String(tombstoneSeconds),
          CTX_TURNS_LEASE_SECONDS: String(leaseSeconds),
          PODS: podAddresses.join(),
          KV_DIR: kvDirectory,
          REDIS_URL: redisUrl,
        },
      }),
    )
  const gateways = [await gateway(0), await gateway(1)] as const
  const envoy = await startEnvoy({
    children,
    file: 'envoy.yaml',
    addresses: {
      listen: `127.0.0.1:${port(0)}`,
      pods: podAddresses,
      gateways: [2, 3].map((index) => `127.0.0.1:${port(index)}`),
      bodyNames: ['prompt_cache_key', 'session_id'],
    },
    concurrency: 1,
  })
  return {
    url: `http://127.0.0.1:${port(0)}`,
    model,
    redisUrl,
    envoy: envoy.child,
    redis,
    gateways,
    adminUrls: [4, 5].map((index) => `http://127.0.0.1:${port(index)}`),
    inspectorPort,
    pods,
    kvFiles: async () => (await readdir(kvDirectory)).filter((name) => name.startsWith('ctx-')),
  }
}
