// The folder in which slots are saved, shared by all pods (llama-server's --slot-save-path). A file appears under its
// name only when it is complete; what a killed process left unfinished is swept away.
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A folder of slot files. */
export interface StateFolder {
  /** Path of the file, or undefined where the name is not a plain file name. */
  pathOf(filename: string): string | undefined
  /** A path of its own for a file that is still being written. */
  unfinishedPath(): string
  /** Removes unfinished files that nobody has written to for `unfinishedMaxAgeMs` before `nowMs`. Returns how many. */
  sweep(nowMs: number): Promise<number>
}

/** Age from which an unfinished file is taken for abandoned. */
export const unfinishedMaxAgeMs = 120_000

/** Letters, digits, `_`, `-` and single dots inside: no separators, no hidden files, nothing that leaves the folder. */
const plainName = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
const maxNameLength = 200
const unfinishedName = /^\.[0-9a-f-]{36}\.part$/

/** Opens the folder, making it if need be. */
export async function openStateFolder(folder: string): Promise<StateFolder> {
  await mkdir(folder, { recursive: true })
  return {
    pathOf: (filename) =>
      filename.length <= maxNameLength && plainName.test(filename) ? join(folder, filename) : undefined,
    unfinishedPath: () => join(folder, `.${randomUUID()}.part`),
    async sweep(nowMs) {
      const names = (await readdir(folder)).filter((name) => unfinishedName.test(name))
      const removed = await Promise.all(names.map((name) => removeIfOld(join(folder, name), nowMs)))
      return removed.filter(Boolean).length
    },
  }
}

async function removeIfOld(path: string, nowMs: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined || nowMs - found.mtimeMs < unfinishedMaxAgeMs) return false
  await rm(path, { force: true })
  return true
}
