import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hasErrorCode } from '../has-error-code.ts'

/** Absolute paths of the files below `folder` whose path relative to it matches, in order. Empty without the folder. */
export async function filesMatching(folder: string, pattern: RegExp): Promise<readonly string[]> {
  return (await relativePaths(folder))
    .filter((path) => pattern.test(path))
    .sort()
    .map((path) => join(folder, path))
}

/**
 * The folders of an unpacked package tree in which programs look for shared libraries: `usr/lib/<platform>`, `lib/<platform>`
 * and their direct subfolders that hold libraries of one package.
 */
export async function libraryFolders(root: string): Promise<readonly string[]> {
  const folders = new Set<string>()
  for (const base of ['usr/lib', 'lib']) {
    for (const path of await relativePaths(join(root, base))) {
      const folder = /^([^/]+(?:\/[^/]+)?)\/lib[^/]+\.so(?:\.[\d.]+)?$/.exec(path)?.[1]
      if (folder !== undefined) folders.add(join(root, base, folder))
    }
  }
  return [...folders].sort()
}

async function relativePaths(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder, { recursive: true })
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return []
    throw error
  }
}
