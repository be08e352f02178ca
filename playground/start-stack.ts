import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import type { Children } from './child-process.ts'
import { freePort, freePorts, isPortFree } from './free-port.ts'
import { findEnvoy } from './install/find-envoy.ts'
import { installLlamaRuntime } from './install/install-llama-runtime.ts'
import type { StartServer } from './keep-running.ts'
import { stateDir, toolsDir } from './paths.ts'
import type { Environment, Report } from './run-command.ts'
import type { RunSettings } from './run-settings.ts'
import { type StartEngineOptions, startEngine } from './start-engine.ts'
import { startEnvoy } from './start-envoy.ts'
import { startGateway } from './start-gateway.ts'
import { startRedis } from './start-redis.ts'
import type { Launch } from './start-server.ts'
import { httpGet, waitUntilReady } from './wait-until-ready.ts'

/** Envoy, the gateway and pods on this machine, ready for requests. */
export interface RunningStack {
  /** `http://127.0.0.1:8000`, where clients connect. */
  readonly url: string
  /** `127.0.0.1:8080` */
  readonly pods: readonly string[]
  /** Of the gateway: `http://127.0.0.1:9090` */
  readonly adminUrl: string
  /** Of Envoy: `127.0.0.1:9901` */
  readonly envoyAdmin: string
}

interface StackLaunch extends Launch {
  /** Passed on to the gateway, with secret, pods, Redis and KV folder. */
  readonly env: Environment
  readonly children: Children
  readonly onLine: Report
  /** How the model of random weights is served, where no other is named. Default: as `startEngine` does. */
  readonly randomModel?: Pick<StartEngineOptions, 'vocabulary' | 'contextTokensPerSlot'> | undefined
  /** Starts each server. Default: once. */
  readonly keep?: StartServer | undefined
}

/**
 * Starts pods of the embedded engine unless `settings` names others, a Redis if it asks for one, the gateway, and
 * Envoy. After an error the caller stops what is in `launch.children`.
 * @throws InstallError, NotReadyError, Error when the port is in use, or the signal's reason
 */
export const startStack = async (settings: RunSettings, launch: StackLaunch): Promise<RunningStack> => {
  const { env, onLine, signal, keep = (start) => start() } = launch
  const { host, port, modelPath, startsRedis, keepsSessions } = settings
  // Envoy shares its ports (SO_REUSEPORT), so it would start beside another one.
  if (!(await isPortFree(settings))) {
    throw new Error(`${host}:${port} is in use or not of this machine. Choose another: GATEWAY_PORT=8001 make run`)
  }
  const [extprocPort = 0, adminPort, envoyAdminPort, redisPort] = await freePorts(4)
  // Gateways with sessions in different places cannot share a folder of KV.
  const kvFolder = startsRedis ? `kv-redis-${port}` : keepsSessions ? 'kv' : `kv-${port}`
  const kvDirectory = settings.kvDirectory ?? join(stateDir(env), kvFolder)
  // Not the logs of pods (JSON) and Redis (`pid:role`).
  const progress = (line: string): void => void (/^(\{|\d+:[A-Z] )/.test(line) || onLine(line))

  const startPod = async (name: string): Promise<string> => {
    onLine(`starting ${name}, an embedded engine`)
    const modelNames = modelPath === undefined ? ['tiny-random', 'facebook-opt-125m'] : undefined
    const extraArguments = ['--log-level', 'warn']
    const ofModel = modelPath === undefined ? launch.randomModel : {}
    const engine = { name, port: await freePort(), kvDirectory, modelPath, modelNames, extraArguments, ...ofModel }
    return (await keep(() => startEngine({ ...launch, ...engine, onLine: progress }))).address
  }
  const startOwnRedis = async (): Promise<string> => {
    const own = { port: redisPort, dir: join(stateDir(env), `redis-${port}`), appendOnly: true }
    return (await keep(() => startRedis({ ...launch, ...own, onLine: progress }))).url
  }
  // Installed once, not by each pod.
  const tools = { env, toolsDir: toolsDir(env), report: onLine, signal }
  await Promise.all([findEnvoy(tools), settings.pods === undefined ? installLlamaRuntime(tools) : undefined])
  const [pods, redisUrl] = await Promise.all([
    settings.pods ?? Promise.all(['pod-a', 'pod-b'].map(startPod)),
    startsRedis ? startOwnRedis() : env['REDIS_URL'],
  ])
  onLine('starting the gateway')
  // What is wrong with the file the gateway tells.
  const file = parseDocument(await readFile(env['CTX_CONFIG_FILE'] ?? '', 'utf8').catch(() => ''))
  const named = env['CTX_TENANT_SECRET_FILE'] || ['secret', 'secretFile'].some((name) => file.getIn(['tenant', name]))
  const gatewayEnv = {
    ...env,
    CTX_TENANT_SECRET: env['CTX_TENANT_SECRET'] || (named ? undefined : await ownSecret(env)),
    CTX_LOG_LEVEL: env['CTX_LOG_LEVEL'] ?? 'warn',
    PODS: pods.join(','),
    KV_DIR: kvDirectory,
    REDIS_URL: redisUrl,
  }
  const gateway = await keep(
    async () => {
      // KV of sessions that were in memory is of no use, and would count as another gateway's.
      if (!keepsSessions && settings.kvDirectory === undefined) await rm(kvDirectory, { recursive: true, force: true })
      await mkdir(kvDirectory, { recursive: true })
      const log = (line: string): void => void (line.startsWith('{') && onLine(line))
      return startGateway({ ...launch, extprocPort, adminPort, env: gatewayEnv, onLine: log })
    },
    keepsSessions ? '' : '; its sessions were in memory and are gone (make run REDIS=1 keeps them)',
  )
  const envoy = await keep(() =>
    startEnvoy({
      ...launch,
      file: 'envoy.yaml',
      addresses: {
        listen: `${host}:${port}`,
        admin: `127.0.0.1:${envoyAdminPort}`,
        pods,
        gateways: [gateway.extproc],
        bodyNames: ['prompt_cache_key', 'session_id'],
        connector: env['CTX_KV_CONNECTOR'] || env['CONNECTOR'] || undefined,
        keepsResponses: env['CTX_RESPONSES_STORE'] === 'true' || file.getIn(['responses', 'store']) === true,
      },
    }),
  )
  const urlHost = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  const url = `http://${urlHost}:${port}`
  // Each worker of Envoy answers 503 until it knows that the gateway is healthy, which answers this with 401.
  const check = async (): Promise<boolean> => ((await httpGet(`${url}/v1/context`))?.status ?? 503) < 500
  await waitUntilReady(envoy.child, { description: `an answer of the gateway at ${url}`, check }, { signal })
  return { url, pods, adminUrl: gateway.adminUrl, envoyAdmin: envoy.adminAddress }
}

/** Sessions in Redis outlive the process only if the secret does too. */
const ownSecret = async (env: Environment): Promise<string> => {
  const path = join(stateDir(env), 'secret')
  await mkdir(stateDir(env), { recursive: true, mode: 0o700 })
  await writeFile(path, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' }).catch(() => undefined)
  const secret = await readFile(path, 'utf8')
  if (secret === '') throw new Error(`the secret in ${path} was not written in full: remove the file`)
  return secret
}
