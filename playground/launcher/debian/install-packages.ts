import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findOnPath } from '../find-on-path.ts'
import { InstallError } from '../install-once.ts'
import { runCommand } from '../run-command.ts'
import type { FindToolOptions } from '../server-tool.ts'
import { type Apt, type AptLists, createApt } from './apt.ts'
import { mainArchive } from './apt-sources.ts'
import { libraryClosure } from './library-closure.ts'
import { parseOsRelease, readAptSources } from './read-apt-sources.ts'

/** Packages to unpack into a folder, without installing them. */
export interface InstallPackagesOptions {
  /** An existing folder; receives `usr/…` and the like. */
  readonly into: string
  readonly packages: readonly string[]
  /** Whether a library that the packages need is to be unpacked too. */
  readonly isNeeded: (library: string) => boolean
  /** The system's own release, or Debian's development release from the same mirror. */
  readonly suite: 'own' | 'sid'
  /** The start of progress lines. */
  readonly label: string
  readonly tool: FindToolOptions
}

const unpackTimeoutMs = 60_000

/**
 * Downloads packages with the libraries they need and unpacks them. The system is not changed and root is not needed.
 * @throws InstallError
 */
export async function installDebianPackages(options: InstallPackagesOptions): Promise<void> {
  const dpkg = await findOnPath('dpkg', options.tool.env)
  if (dpkg === undefined) throw new InstallError('dpkg is not on PATH, so this is no Debian system')
  const work = join(options.into, 'work')
  try {
    await mkdir(join(work, 'debs'), { recursive: true })
    await download({ ...options, work })
    for (const name of await readdir(join(work, 'debs'))) {
      const command = [dpkg, '--extract', join(work, 'debs', name), options.into] as const
      const { env, signal } = options.tool
      const outcome = await runCommand({ command, env, signal, timeoutMs: unpackTimeoutMs })
      if (!outcome.ok) throw new InstallError(`${name} could not be unpacked (${outcome.reason})`)
    }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** The system's lists serve when they are there and not outdated; else lists of our own are fetched. */
async function download(options: InstallPackagesOptions & { readonly work: string }): Promise<void> {
  if (options.suite === 'own') {
    const apt = await openApt(options, { kind: 'system' })
    const done = await downloadWith(apt, options).then(
      () => true,
      () => false,
    )
    if (done) return
    if (options.tool.signal?.aborted === true) throw new InstallError('interrupted')
  }
  const sourcesText = options.suite === 'own' ? undefined : await sidSource()
  const apt = await openApt(options, { kind: 'private', sourcesText })
  options.tool.report?.(`${options.label}: fetching package lists`)
  await apt.refresh()
  await downloadWith(apt, options)
}

async function openApt(options: InstallPackagesOptions & { readonly work: string }, lists: AptLists): Promise<Apt> {
  const folder = join(options.work, `apt-${lists.kind}`)
  await mkdir(folder, { recursive: true })
  return createApt({ folder, lists, tool: options.tool })
}

async function downloadWith(apt: Apt, options: InstallPackagesOptions & { readonly work: string }): Promise<void> {
  const names = await libraryClosure({
    packages: options.packages,
    dependsOf: (packages) => apt.dependsOf(packages),
    isNeeded: options.isNeeded,
  })
  options.tool.report?.(`${options.label}: downloading ${names.length} packages`)
  await apt.download(names, join(options.work, 'debs'))
}

/** Debian's development release, from the mirror that the machine uses for its own. */
async function sidSource(): Promise<string> {
  const system = parseOsRelease(await readFile('/etc/os-release', 'utf8').catch(() => ''))
  if (system.id !== 'debian' || system.codename === undefined) throw new InstallError('this is no Debian system')
  const archive = mainArchive(await readAptSources({ aptFolder: '/etc/apt' }), system.codename)
  if (archive === undefined) throw new InstallError('no Debian mirror is configured in /etc/apt')
  return sidSourceText(archive)
}

/** The archive's development release as a deb822 source. */
export function sidSourceText(archive: { readonly uri: string; readonly signedBy: string | undefined }): string {
  const signedBy = archive.signedBy === undefined ? [] : [`Signed-By: ${archive.signedBy}`]
  return ['Types: deb', `URIs: ${archive.uri}`, 'Suites: sid', 'Components: main', ...signedBy, ''].join('\n')
}
