import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Children } from './child-process.ts'
import { isPortFree } from './free-port.ts'
import { stateDir } from './paths.ts'
import type { Environment, Report } from './run-command.ts'
import type { RunSettings } from './run-settings.ts'
import { startEngine } from './start-engine.ts'
import { startEnvoy } from './start-envoy.ts'
import { startGateway } from './start-gateway.ts'
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
  /** Passed on to the gateway, with secret, pods and KV folder. */
  readonly env: Environment
  readonly children: Children
  readonly onLine: Report
}

/**
 * Starts pods of the embedded engine unless `settings` names others, the gateway, and Envoy. After an error the caller stops
 * what is in `launch.children`.
 * @throws InstallError, NotReadyError, Error when the port is in use, or the signal's reason
 */
export const startStack = async (settings: RunSettings, launch: StackLaunch): Promise<RunningStack> => {
  const { env, onLine, signal } = launch
  // Envoy shares its ports (SO_REUSEPORT), so it would start beside another one.
  if (!(await isPortFree(settings))) {
    throw new Error(`Port ${settings.port} is in use. Choose another: GATEWAY_PORT=8001 make run`)
  }
  const kvDirectory = settings.kvDirectory ?? join(stateDir(env), env['REDIS_URL'] ? 'kv' : `kv-${settings.port}`)
  await mkdir(kvDirectory, { recursive: true })
  const pods = settings.pods ?? (await startPods({ ...settings, kvDirectory }, launch))
  onLine('starting the gateway')
  const gateway = await startGateway({
    ...launch,
    env: {
      ...env,
      CTX_TENANT_SECRET: env['CTX_TENANT_SECRET'] ?? (await ownSecret(env)),
      CTX_LOG_LEVEL: env['CTX_LOG_LEVEL'] ?? 'warn',
      PODS: pods.join(','),
      KV_DIR: kvDirectory,
    },
  })
  const listen = `${settings.host}:${settings.port}`
  const addresses = { listen, pods, gateways: [gateway.extproc], connector: env['CONNECTOR'] || undefined }
  const envoy = await startEnvoy({ ...launch, file: settings.envoyConfig, addresses })
  const url = `http://${urlHost(settings)}:${settings.port}`
  // Envoy is ready when its listeners are; each of its workers learns a moment later that the gateway is healthy, and
  // answers 503 until then. The gateway refuses a request without credentials.
  const check = async (): Promise<boolean> => ((await httpGet(`${url}/v1/context`))?.status ?? 503) < 500
  await waitUntilReady(envoy.child, { description: `an answer of the gateway at ${url}`, check }, { signal })
  return { url, pods, adminUrl: gateway.adminUrl, envoyAdmin: envoy.adminAddress }
}

/** One after the other: the first one may have to write the model. */
const startPods = async (
  { modelPath, kvDirectory }: Pick<RunSettings, 'modelPath'> & { readonly kvDirectory: string },
  launch: StackLaunch,
): Promise<readonly string[]> => {
  launch.onLine('starting two pods of the embedded engine')
  const pods: string[] = []
  for (const name of ['pod-a', 'pod-b']) {
    const { address } = await startEngine({
      ...launch,
      name,
      kvDirectory,
      onLine: (line) => void (line.startsWith('{') || launch.onLine(line)),
      modelPath,
      modelNames: modelPath === undefined ? ['tiny-random', 'facebook-opt-125m'] : undefined,
      extraArguments: ['--log-level', 'warn'],
    })
    pods.push(address)
  }
  return pods
}

/** Sessions in Redis outlive the process only if the secret does too. */
const ownSecret = async (env: Environment): Promise<string> => {
  const path = join(stateDir(env), 'secret')
  await mkdir(stateDir(env), { recursive: true, mode: 0o700 })
  await writeFile(path, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' }).catch(() => undefined)
  return readFile(path, 'utf8')
}

const urlHost = ({ host }: RunSettings): string =>
  host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
