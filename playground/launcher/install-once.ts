import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasErrorCode } from './has-error-code.ts'

/** An installation that went wrong for a reason the user can act on; the message is one line. */
export class InstallError extends Error {
  override readonly name = 'InstallError'
}

/** What to install where. */
export interface InstallOnceOptions {
  /** The finished installation's folder. When it exists, nothing is done. */
  readonly directory: string
  /** Fills a folder that is moved to `directory` afterwards, so it must not write its own path into a file. */
  readonly install: (into: string) => Promise<void>
}

/**
 * Installs into a folder of its own and moves it into place in one step: `directory` is absent or complete, also after
 * kill -9. Several processes may do it at once; the first to finish wins and the others drop theirs.
 * @throws whatever `install` throws; nothing is left behind then.
 */
export async function installOnce({ directory, install }: InstallOnceOptions): Promise<void> {
  if (existsSync(directory)) return
  const parent = dirname(directory)
  const prefix = `${basename(directory)}.partial-`
  await mkdir(parent, { recursive: true })
  await removeAbandoned({ parent, prefix })
  const into = join(parent, `${prefix}${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    await mkdir(into)
    await install(into)
    await moveIntoPlace({ from: into, to: directory })
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}

async function moveIntoPlace({ from, to }: { from: string; to: string }): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if (!existsSync(to)) throw error
  }
}

/** Removes what a killed process left: its folder carries the id of a process that is gone. */
async function removeAbandoned({ parent, prefix }: { parent: string; prefix: string }): Promise<void> {
  for (const name of await readdir(parent)) {
    const owner = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN
    if (Number.isNaN(owner) || isAlive(owner)) continue
    await rm(join(parent, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasErrorCode(error, 'EPERM')
  }
}
