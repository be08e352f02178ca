import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AptSource, parseListFile, parseSourcesFile } from './apt-sources.ts'

/** The enabled binary package sources of a machine, in apt's order. Files that cannot be read count as empty. */
export async function readAptSources(options: { readonly aptFolder: string }): Promise<readonly AptSource[]> {
  const parts = join(options.aptFolder, 'sources.list.d')
  const names = await readdir(parts).catch(() => [])
  const sources = [...parseListFile(await readText(join(options.aptFolder, 'sources.list')))]
  for (const name of names.toSorted((one, other) => (one < other ? -1 : 1))) {
    if (name.endsWith('.list')) sources.push(...parseListFile(await readText(join(parts, name))))
    else if (name.endsWith('.sources')) sources.push(...parseSourcesFile(await readText(join(parts, name))))
  }
  return sources
}

/** `ID` and `VERSION_CODENAME` of an os-release file. */
export function parseOsRelease(text: string): {
  readonly id: string | undefined
  readonly codename: string | undefined
} {
  const value = (name: string): string | undefined =>
    new RegExp(`^${name}=["']?([^"'\\n]+)["']?\\s*$`, 'm').exec(text)?.[1]
  return { id: value('ID'), codename: value('VERSION_CODENAME') }
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
