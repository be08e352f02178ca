import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeExit, type ManagedChild } from './child-process.ts'
import { renderEnvoyConfig } from './envoy-config.ts'
import { isPortFree } from './free-port.ts'
import { findEnvoy } from './install/find-envoy.ts'
import { packageRoot, stateDir, toolsDir } from './paths.ts'
import type { Environment } from './run-command.ts'
import { type RunSettings, readRunSettings } from './run-settings.ts'
import { startEngine } from './start-engine.ts'
import { startEnvoy } from './start-envoy.ts'
import { startGateway } from './start-gateway.ts'
import { waitUntilReady } from './wait-until-ready.ts'

export interface RunOptions {
  readonly env: Environment
  /** Prints a line for people; both return the exit code that belongs to it. */
  readonly print: (line: string) => number
  readonly fail: (line: string) => number
  /** Resolves when everything is to end. */
  readonly untilStopped: () => Promise<unknown>
}

/** How many of its last lines are shown of a child that ended. */
const shownLines = 20

/**
 * `context-cache-gateway run`: Envoy, the gateway and pods on this machine, until Ctrl-C, which also ends a start in
 * progress. Resolves to the exit code; no process stays behind.
 */
export const runEverything = async (options: RunOptions): Promise<number> => {
  const { print, fail } = options
  const settings = readRunSettings(options.env)
  if (typeof settings === 'string') return fail(settings)
  const started: ManagedChild[] = []
  const stopping = new AbortController()
  const stopped = options.untilStopped().then(() => {
    print('stopping')
    stopping.abort(new Error('interrupted'))
  })
  try {
    print(await startAll(settings, { ...options, signal: stopping.signal, onChild: (child) => started.push(child) }))
    const first = await Promise.race([stopped, ...started.map((child) => child.exited.then(() => child))])
    return first === undefined ? 0 : fail(await obituary(first))
  } catch (error) {
    if (stopping.signal.aborted) return 0
    return fail(error instanceof Error ? error.message : String(error))
  } finally {
    // Envoy first, so that clients see a closed port and not a half-dead gateway.
    for (const child of started.reverse()) await child.stop()
  }
}

const obituary = async (child: ManagedChild): Promise<string> => {
  const lines = child.output().slice(-shownLines)
  const printed = lines.length === 0 ? 'It printed nothing.' : `Its last lines:\n${lines.join('\n')}`
  return `${child.name} ${describeExit(await child.exited)}. ${printed}`
}

interface Start extends RunOptions {
  readonly signal: AbortSignal
  readonly onChild: (child: ManagedChild) => void
}

/** Resolves to what to print. @throws the signal's reason, and what the starters throw */
const startAll = async (settings: RunSettings, start: Start): Promise<string> => {
  const { env, print, onChild, signal } = start
  // Envoy shares its ports (SO_REUSEPORT), so it would start beside another one.
  if (!(await isPortFree(settings))) {
    throw new Error(`Port ${settings.port} is in use. Choose another: GATEWAY_PORT=8001 make run`)
  }
  const template = await readFile(join(packageRoot(), settings.envoyConfig), 'utf8')
  const tool = await findEnvoy({ env, toolsDir: toolsDir(env), report: print, signal })
  const kvDirectory = settings.kvDirectory ?? join(stateDir(env), 'kv')
  await mkdir(kvDirectory, { recursive: true })
  const pods = settings.pods ?? (await startPods(settings, { ...start, kvDirectory }))
  print('starting the gateway')
  const gateway = await startGateway({
    env: {
      ...env,
      CTX_TENANT_SECRET: env['CTX_TENANT_SECRET'] ?? (await ownSecret(env)),
      CTX_LOG_LEVEL: env['CTX_LOG_LEVEL'] ?? 'warn',
      PODS: pods.join(','),
      KV_DIR: kvDirectory,
    },
    onLine: print,
    signal,
  })
  onChild(gateway.child)
  const text = renderEnvoyConfig(template, {
    listen: `${settings.host}:${settings.port}`,
    admin: '127.0.0.1:0',
    pods,
    gateways: [gateway.extproc],
  })
  const envoy = await startEnvoy({ tool, config: { text }, logLevel: 'error', onLine: print, signal })
  onChild(envoy.child)
  const url = `http://${urlHost(settings)}:${settings.port}`
  // Envoy is ready when its listeners are; each of its workers learns a moment later that the gateway is healthy, and
  // answers 503 until then. The gateway refuses a request without credentials.
  await waitUntilReady(envoy.child, { kind: 'http', url: `${url}/v1/context`, mayRefuse: true }, { signal })
  return readyText(settings, { url, pods, adminUrl: gateway.adminUrl, envoyAdmin: envoy.adminAddress })
}

/** One after the other: the first one may have to write the model. */
const startPods = async (
  settings: RunSettings,
  { print, onChild, env, signal, kvDirectory }: Start & { readonly kvDirectory: string },
): Promise<readonly string[]> => {
  print('starting two pods of the embedded engine')
  const pods: string[] = []
  for (const name of ['pod-a', 'pod-b']) {
    const engine = await startEngine({
      name,
      kvDirectory,
      env,
      signal,
      onLine: (line) => line.startsWith('{') || print(line),
      modelPath: settings.modelPath,
      modelNames: settings.modelPath === undefined ? ['tiny-random', 'facebook-opt-125m'] : undefined,
      extraArguments: ['--log-level', 'warn'],
    })
    onChild(engine.child)
    pods.push(engine.address)
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

const readyText = (
  settings: RunSettings,
  addresses: {
    readonly url: string
    readonly pods: readonly string[]
    readonly adminUrl: string
    readonly envoyAdmin: string
  },
): string => {
  const { url, pods, adminUrl, envoyAdmin } = addresses
  const isRandom = settings.modelPath === undefined && settings.pods === undefined
  const model = isRandom ? 'tiny-random' : 'YOUR_MODEL'
  const noise = ['', 'The model has random weights: its text is noise, its prefill, its KV and its times are real.']
  return [
    `ready  ${url}  pods ${pods.join(', ')}  metrics ${adminUrl}/metrics  envoy ${envoyAdmin}`,
    ...(isRandom ? noise : []),
    '',
    'Try it (Ctrl-C ends everything):',
    `  curl -i ${url}/v1/context -H 'Authorization: Bearer test-key-1234567890' -H 'x-session-ttl: 3600' \\`,
    `    -H 'Content-Type: application/json' -d '{"model": "${model}", "prompt": "Say this is a test"}'`,
  ].join('\n')
}
