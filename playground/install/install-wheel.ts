import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, runCommand } from '../run-command.ts'
import { type FindToolOptions, findOnPath } from './find-tool.ts'
import { InstallError } from './install-once.ts'

const timeoutMs = 300_000

/**
 * Unpacks a wheel into `into`; pip's `--target` leaves the system's Python alone. One of the hashes has to match, or pip
 * installs nothing. @throws InstallError
 */
export const installWheel = async (
  into: string,
  wheel: { readonly requirement: string; readonly sha256: readonly string[] },
  options: FindToolOptions,
): Promise<void> => {
  const { env, signal } = options
  const run = (command: Command) => runCommand({ command, env, signal, timeoutMs })
  const python = await findOnPath('python3', env)
  if (python === undefined) throw new InstallError('python3 is not on PATH')
  const venv = join(into, 'venv')
  let pip: Command = [python, '-m', 'pip']
  if (!(await run([...pip, '--version'])).ok) {
    const made = await run([python, '-m', 'venv', venv])
    if (!made.ok) throw new InstallError(`${python} has neither pip nor venv (${made.reason})`)
    pip = [join(venv, 'bin', 'python3'), '-m', 'pip']
  }
  const requirements = join(into, 'requirements.txt')
  await writeFile(requirements, [wheel.requirement, ...wheel.sha256.map((hash) => `--hash=sha256:${hash}`)].join(' '))
  options.report?.(`pip installs ${wheel.requirement}`)
  const flags = ['--quiet', '--no-input', '--no-deps', '--require-hashes', '--only-binary', ':all:']
  const target = join(into, 'site-packages')
  const installed = await run([...pip, 'install', ...flags, '--target', target, '--requirement', requirements])
  if (!installed.ok) throw new InstallError(`pip could not install ${wheel.requirement} (${installed.reason})`)
  await rm(venv, { recursive: true, force: true })
}
