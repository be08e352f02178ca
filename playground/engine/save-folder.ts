// The folder in which slots are saved, shared by all pods: llama-server's `--slot-save-path`.
import { mkdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface SaveFolder {
  /** Path of the file, or undefined where the name is not a plain file name. */
  pathOf(filename: string): string | undefined
  bytesOf(path: string): Promise<number>
}

/** Letters, digits, `_`, `-` and single dots inside: no separators, no hidden files, nothing that leaves the folder. */
const plainName = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
const maxNameLength = 200

/** Opens the folder, creating it when it is missing. */
export const openSaveFolder = (folder: string): SaveFolder => {
  mkdirSync(folder, { recursive: true })
  return {
    pathOf: (name) => (name.length <= maxNameLength && plainName.test(name) ? join(folder, name) : undefined),
    bytesOf: async (path) => (await stat(path)).size,
  }
}
