import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Command, type Environment, runCommand } from '../run-command.ts'

/** An installation that failed for a reason the user can act on; the message is one line. */
export class InstallError extends Error {
  override readonly name = 'InstallError'
}

const timeoutMs = 1_800_000

/** Runs a program of an installation to its end, within half an hour. @throws InstallError, or the signal's reason */
export const runInstaller = async (
  command: Command,
  options: { readonly env: Environment; readonly cwd?: string; readonly signal?: AbortSignal | undefined },
): Promise<void> => {
  const { env, cwd, signal } = options
  const outcome = await runCommand({ command, env, cwd, signal, timeoutMs })
  signal?.throwIfAborted()
  if (!outcome.ok) throw new InstallError(outcome.reason)
}

/**
 * Fills a folder of its own and moves it to `directory` in one step: `directory` is absent or complete, also after kill
 * -9. Several processes and containers may do it at once; the first to finish wins, the others drop theirs. When
 * `directory` exists, nothing is done. `install` must not write the path of its folder into a file.
 * @throws what `install` throws; nothing is left behind then
 */
export const installOnce = async (options: {
  readonly directory: string
  readonly install: (into: string) => Promise<void>
}): Promise<void> => {
  const { directory } = options
  if (existsSync(directory)) return
  const parent = dirname(directory)
  await mkdir(parent, { recursive: true })
  const into = await mkdtemp(`${directory}.partial-`)
  try {
    await options.install(into)
    await rename(into, directory).catch((error: unknown) => {
      if (!existsSync(directory)) throw error
    })
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}
