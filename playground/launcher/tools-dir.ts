import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where `toolsDir` looks. */
export interface ToolsDirOptions {
  /** A folder to use instead of `<package root>/.tools`; a relative path counts from the working directory. */
  readonly override?: string | undefined
}

/**
 * The folder for the servers that the project installs for itself (Envoy, Redis, llama-server).
 * Nothing outside it is changed by an installation, and deleting it undoes all of them.
 */
export function toolsDir(options: ToolsDirOptions = {}): string {
  return options.override === undefined ? join(packageRoot(), '.tools') : resolve(options.override)
}

/** The folder that holds this package's package.json, seen from the sources as from the compiled files. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new Error(`no package.json above ${fileURLToPath(import.meta.url)}`)
    folder = parent
  }
  return folder
}
