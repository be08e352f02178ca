import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type ManagedChild, startChild } from './child-process.ts'
import { flag } from './flag.ts'
import { httpGet } from './http-get.ts'
import { runCommand } from './run-command.ts'
import type { Environment, ServerTool } from './server-tool.ts'
import { type ReadyProbe, readyOrKilled } from './wait-until-ready.ts'

/** An Envoy configuration: a YAML (or JSON) text, or a file that holds one. */
export type EnvoyConfig = { readonly text: string } | { readonly path: string }

/** An Envoy to run. */
export interface StartEnvoyOptions {
  /** From `findEnvoy`. */
  readonly tool: ServerTool
  /** Has to name an admin address; its port may be 0. */
  readonly config: EnvoyConfig
  /** Worker threads. Default: Envoy's own, one per processor. */
  readonly concurrency?: number | undefined
  /** Default: `warning`. */
  readonly logLevel?: 'trace' | 'debug' | 'info' | 'warning' | 'error' | undefined
  /** What relative file names in the configuration count from. Default: this process's working directory. */
  readonly cwd?: string | undefined
  /** Default: 15,000. */
  readonly readyTimeoutMs?: number | undefined
  /** Called with every line that Envoy prints. */
  readonly onLine?: ((line: string) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

/** An Envoy whose listeners and initial clusters are up. */
export interface RunningEnvoy {
  /** `127.0.0.1:9901`. */
  readonly adminAddress: string
  readonly child: ManagedChild
}

/** What Envoy says of a configuration. */
export type EnvoyVerdict = { readonly valid: true } | { readonly valid: false; readonly output: string }

const defaultReadyTimeoutMs = 15_000
const attemptTimeoutMs = 1000
const validateTimeoutMs = 30_000

/**
 * Starts Envoy and waits for its admin interface to call it ready. Call it from the main thread: Envoy ends with the
 * thread that started it.
 * @throws NotReadyError
 */
export async function startEnvoy(options: StartEnvoyOptions): Promise<RunningEnvoy> {
  const timeoutMs = options.readyTimeoutMs ?? defaultReadyTimeoutMs
  return withFolder(async (folder) => {
    const addressFile = join(folder, 'admin-address')
    const child = await startChild({
      name: 'envoy',
      command: [
        ...options.tool.command,
        '--disable-hot-restart',
        ...flag('--config-path', await configPath(options.config, folder)),
        ...flag('--admin-address-path', addressFile),
        ...flag('--log-level', options.logLevel ?? 'warning'),
        ...flag('--concurrency', options.concurrency),
      ],
      cwd: options.cwd,
      onLine: options.onLine,
    })
    const probe: ReadyProbe = {
      kind: 'check',
      description: '200 from /ready at the admin address that the configuration has to name',
      check: (signal) => isReady(addressFile, signal),
    }
    await readyOrKilled(child, probe, { timeoutMs, signal: options.signal })
    return { adminAddress: await readAdminAddress(addressFile), child }
  })
}

/** Runs `envoy --mode validate`. Never throws over what the configuration says. */
export async function validateEnvoyConfig(options: {
  readonly tool: ServerTool
  readonly config: EnvoyConfig
  readonly env: Environment
  readonly cwd?: string | undefined
  readonly signal?: AbortSignal | undefined
}): Promise<EnvoyVerdict> {
  return withFolder(async (folder) => {
    const outcome = await runCommand({
      command: [
        ...options.tool.command,
        '--disable-hot-restart',
        ...flag('--mode', 'validate'),
        ...flag('--config-path', await configPath(options.config, folder)),
        ...flag('--log-level', 'warning'),
      ],
      env: options.env,
      cwd: options.cwd,
      timeoutMs: validateTimeoutMs,
      signal: options.signal,
    })
    return outcome.ok ? { valid: true } : { valid: false, output: `${outcome.reason}\n${outcome.stderr}`.trim() }
  })
}

async function isReady(addressFile: string, signal: AbortSignal): Promise<boolean> {
  const address = await readAdminAddress(addressFile)
  if (!/^\S+:\d+$/.test(address)) return false
  const answer = await httpGet(`http://${address}/ready`, { timeoutMs: attemptTimeoutMs, signal })
  return answer.ok && answer.status === 200
}

/** Empty as long as Envoy has not written it. */
async function readAdminAddress(addressFile: string): Promise<string> {
  return (await readFile(addressFile, 'utf8').catch(() => '')).trim()
}

async function configPath(config: EnvoyConfig, folder: string): Promise<string> {
  if ('path' in config) return resolve(config.path)
  const path = join(folder, 'envoy.yaml')
  await writeFile(path, config.text, { mode: 0o600 })
  return path
}

/** Envoy reads its files while it starts and never again, so they need not outlive that. */
async function withFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'envoy-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
