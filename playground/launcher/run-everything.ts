import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { ManagedChild } from './child-process.ts'
import { renderEnvoyConfig } from './envoy-config.ts'
import { findEnvoy } from './find-envoy.ts'
import { type RunSettings, readRunSettings } from './run-settings.ts'
import { type Environment, requireTool } from './server-tool.ts'
import { startEngine } from './start-engine.ts'
import { startEnvoy } from './start-envoy.ts'
import { startGateway } from './start-gateway.ts'
import { packageRoot, toolsDir } from './tools-dir.ts'
import { waitUntilReady } from './wait-until-ready.ts'

/** Where `make run` keeps what outlives it: stored KV, the random model, the secret. */
const runDirectory = (): string => join(packageRoot(), '.run')

export interface RunEverythingOptions {
  readonly env: Environment
  /** Prints a line for people; both return the exit code that belongs to it. */
  readonly print: (line: string) => number
  readonly fail: (line: string) => number
  /** Resolves when everything is to end. */
  readonly untilStopped: () => Promise<unknown>
}

/** `context-cache-gateway run`: Envoy, the gateway and pods on this machine, until Ctrl-C. Resolves to the exit code; nothing stays behind. */
export const runEverything = async (options: RunEverythingOptions): Promise<number> => {
  const settings = readRunSettings(options.env)
  if (settings.kind === 'invalid') return options.fail(settings.message)
  const started: ManagedChild[] = []
  const stopped = options.untilStopped()
  try {
    const start = startAll(settings.settings, { ...options, onChild: (child) => started.push(child) })
    const ended = await Promise.race([start.then(() => 'ready' as const), stopped.then(() => 'stopped' as const)])
    if (ended === 'stopped') return 0
    const first = await Promise.race([
      stopped.then(() => undefined),
      ...started.map((child) => child.exited.then(() => child)),
    ])
    if (first === undefined) return 0
    return options.fail(`${first.name} has ended. Its last lines:\n${first.output().slice(-20).join('\n')}`)
  } catch (error) {
    return options.fail(error instanceof Error ? error.message : String(error))
  } finally {
    options.print('stopping')
    // Envoy first, so that clients see a closed port and not a half-dead gateway.
    for (const child of started.reverse()) await child.stop()
  }
}

const startAll = async (
  settings: RunSettings,
  options: RunEverythingOptions & { readonly onChild: (child: ManagedChild) => void },
): Promise<void> => {
  const { print, onChild } = options
  if (await isTaken(settings.port))
    throw new Error(`Port ${settings.port} is in use. Choose another: GATEWAY_PORT=8001 make run`)
  const envoyTool = requireTool(await findEnvoy({ env: options.env, toolsDir: toolsDir(), report: print }))
  const kvDirectory = settings.kvDirectory ?? join(runDirectory(), 'kv')
  await mkdir(kvDirectory, { recursive: true })

  const pods = settings.pods ?? (await startPods(settings, { kvDirectory, print, onChild }))
  print('starting the gateway')
  const gateway = await startGateway({
    env: {
      ...options.env,
      CTX_TENANT_SECRET: options.env['CTX_TENANT_SECRET'] ?? (await ownSecret()),
      CTX_LOG_LEVEL: options.env['CTX_LOG_LEVEL'] ?? 'warn',
      PODS: pods.join(','),
      KV_DIR: kvDirectory,
    },
    onLine: print,
  })
  onChild(gateway.child)

  const template = await readFile(join(packageRoot(), 'envoy.yaml'), 'utf8')
  const text = renderEnvoyConfig(template, {
    listen: `0.0.0.0:${settings.port}`,
    admin: '127.0.0.1:0',
    pods,
    gateways: [gateway.extproc],
  })
  const envoy = await startEnvoy({ tool: envoyTool, config: { text }, logLevel: 'error', onLine: print })
  onChild(envoy.child)
  // Envoy is ready when its listeners are; that the gateway is well each of its workers learns a moment later, and answers 503 until then.
  await waitUntilReady(envoy.child, {
    kind: 'http',
    url: `http://127.0.0.1:${settings.port}/v1/context`,
    // As the gateway does without credentials.
    mayRefuse: true,
  })
  print(readyText(settings, { pods, adminUrl: gateway.adminUrl, envoyAdmin: envoy.adminAddress }))
}

const startPods = async (
  settings: RunSettings,
  parts: {
    readonly kvDirectory: string
    readonly print: (line: string) => void
    readonly onChild: (child: ManagedChild) => void
  },
): Promise<readonly string[]> => {
  parts.print('starting two pods of the embedded engine')
  const pods: string[] = []
  // One after the other: the first one may have to write the model.
  for (const name of ['pod-a', 'pod-b']) {
    const engine = await startEngine({
      name,
      kvDirectory: parts.kvDirectory,
      modelPath: settings.modelPath,
      modelNames: settings.modelPath === undefined ? ['tiny-random', 'facebook-opt-125m'] : undefined,
      extraArguments: ['--log-level', 'warn'],
    })
    parts.onChild(engine.child)
    pods.push(engine.address)
  }
  return pods
}

/** Sessions in Redis outlive the process only if the secret does too. */
const ownSecret = async (): Promise<string> => {
  const path = join(runDirectory(), 'secret')
  await mkdir(runDirectory(), { recursive: true })
  await writeFile(path, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' }).catch(() => undefined)
  return readFile(path, 'utf8')
}

const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 1000 })
    const settle = (taken: boolean): void => {
      socket.destroy()
      resolve(taken)
    }
    socket.once('connect', () => settle(true)).once('timeout', () => settle(false))
    socket.once('error', () => settle(false))
  })

const readyText = (
  settings: RunSettings,
  addresses: { readonly pods: readonly string[]; readonly adminUrl: string; readonly envoyAdmin: string },
): string => {
  const model = settings.modelPath === undefined && settings.pods === undefined ? 'tiny-random' : 'YOUR_MODEL'
  const noise =
    model === 'tiny-random'
      ? ['', 'The model has random weights: its text is noise, its prefill, its KV and its times are real.']
      : []
  return [
    `ready  http://localhost:${settings.port}  pods ${addresses.pods.join(', ')}  metrics ${addresses.adminUrl}/metrics  envoy ${addresses.envoyAdmin}`,
    ...noise,
    '',
    'Try it (Ctrl-C ends everything):',
    `  curl -i http://localhost:${settings.port}/v1/context -H 'Authorization: Bearer test-key-1234567890' -H 'x-session-ttl: 3600' \\`,
    `    -H 'Content-Type: application/json' -d '{"model": "${model}", "prompt": "Say this is a test"}'`,
  ].join('\n')
}
