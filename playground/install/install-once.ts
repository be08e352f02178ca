import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
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

/** No installation takes longer: what is older was left by a process that was killed. */
const abandonedAfterMs = 24 * 3_600_000

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
  const prefix = `${basename(directory)}.partial-`
  await mkdir(parent, { recursive: true })
  await removeAbandoned(parent, prefix)
  const into = await mkdtemp(join(parent, prefix))
  try {
    await options.install(into)
    await rename(into, directory).catch((error: unknown) => {
      if (!existsSync(directory)) throw error
    })
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}

/** Goes by age: a process id says nothing of a process in another container. */
const removeAbandoned = async (parent: string, prefix: string): Promise<void> => {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue
    const path = join(parent, name)
    const changed = await stat(path).catch(() => undefined)
    if (changed === undefined || Date.now() - changed.mtimeMs < abandonedAfterMs) continue
    await rm(path, { recursive: true, force: true })
  }
}
