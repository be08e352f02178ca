import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findOnPath } from '../find-on-path.ts'
import { InstallError } from '../install-once.ts'
import { type CommandOutcome, runCommand } from '../run-command.ts'
import type { Command, FindToolOptions } from '../server-tool.ts'
import { parseStanza } from './apt-sources.ts'

/** Which package lists apt works with. */
export type AptLists =
  /** The system's, as they are. */
  | { readonly kind: 'system' }
  /** Lists of our own, filled by `refresh`, of the system's sources or, where given, of this deb822 text instead. */
  | { readonly kind: 'private'; readonly sourcesText: string | undefined }

/** apt without any effect on the system: no lists, caches, hooks or packages of its are touched, and no root is needed. */
export interface Apt {
  /** Fetches the private lists. @throws InstallError */
  refresh(): Promise<void>
  /** The `Depends` fields of packages. @throws InstallError when one is unknown. */
  dependsOf(names: readonly string[]): Promise<readonly string[]>
  /** Downloads packages' files into a folder. @throws InstallError */
  download(names: readonly string[], folder: string): Promise<void>
}

const refreshTimeoutMs = 180_000
const downloadTimeoutMs = 300_000
const showTimeoutMs = 30_000

/**
 * @param options.folder an existing folder for apt's state and configuration, removed by the caller afterwards
 * @throws InstallError where there is no apt
 */
export async function createApt(options: {
  readonly folder: string
  readonly lists: AptLists
  readonly tool: FindToolOptions
}): Promise<Apt> {
  const { folder, lists, tool } = options
  const aptGet = await requireProgram('apt-get', tool)
  const aptCache = await requireProgram('apt-cache', tool)
  const aptConfig = await requireProgram('apt-config', tool)

  const run = (
    command: Command,
    { timeoutMs, cwd, own }: { timeoutMs: number; cwd?: string; own: boolean },
  ): Promise<CommandOutcome> => {
    const env = { ...tool.env, LC_ALL: 'C', ...(own ? { APT_CONFIG: join(folder, 'apt.conf') } : {}) }
    return runCommand({ command, env, cwd, timeoutMs, signal: tool.signal, maxOutputCharacters: 16 * 1024 * 1024 })
  }

  const dump = await run([aptConfig, 'dump'], { timeoutMs: showTimeoutMs, own: false })
  if (!dump.ok) throw new InstallError(dump.reason)
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true })
  await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true })
  await mkdir(join(folder, 'sources'), { recursive: true })
  await writeFile(join(folder, 'status'), '')
  if (lists.kind === 'private' && lists.sourcesText !== undefined) {
    await writeFile(join(folder, 'sources', 'one.sources'), lists.sourcesText)
  }
  await writeFile(join(folder, 'apt.conf'), aptConfiguration({ folder, lists, systemDump: dump.stdout }), {
    mode: 0o600,
  })

  return {
    async refresh() {
      const outcome = await run([aptGet, 'update', '-q'], { timeoutMs: refreshTimeoutMs, own: true })
      if (!outcome.ok) throw new InstallError(`the package lists could not be fetched (${outcome.reason})`)
    },
    async dependsOf(names) {
      const command = [aptCache, 'show', '--no-all-versions', ...names] as const
      const outcome = await run(command, { timeoutMs: showTimeoutMs, own: true })
      if (!outcome.ok) throw new InstallError(`a package is unknown here (${outcome.reason})`)
      return outcome.stdout.split(/\n\s*\n/).flatMap((stanza) => parseStanza(stanza).get('depends') ?? [])
    },
    async download(names, into) {
      const command = [aptGet, 'download', '-q', ...names] as const
      const outcome = await run(command, { timeoutMs: downloadTimeoutMs, cwd: into, own: true })
      if (!outcome.ok) throw new InstallError(`packages could not be downloaded (${outcome.reason})`)
    },
  }
}

/**
 * Of the system's configuration only how to fetch (proxies, certificates, checks) is taken over: its hooks run on the
 * system's own state, and its pins choose between releases that are not in play here.
 */
export function aptConfiguration(options: {
  readonly folder: string
  readonly lists: AptLists
  readonly systemDump: string
}): string {
  const { folder, lists, systemDump } = options
  const set = (name: string, path: string): string => `${name} "${path}";`
  const fetching = systemDump.split('\n').filter((line) => /^Acquire::[^"]* "[^"]+";$/.test(line))
  const privateLists = [set('Dir::State', folder), set('Dir::State::lists', join(folder, 'lists'))]
  const privateSources = [
    set('Dir::Etc::sourcelist', '/dev/null'),
    set('Dir::Etc::sourceparts', join(folder, 'sources')),
  ]
  return [
    ...fetching,
    set('Dir::Cache', join(folder, 'cache')),
    set('Dir::State::status', join(folder, 'status')),
    set('Dir::Etc::main', '/dev/null'),
    set('Dir::Etc::parts', '/dev/null'),
    set('Dir::Etc::preferences', '/dev/null'),
    set('Dir::Etc::preferencesparts', '/dev/null'),
    ...(lists.kind === 'private' ? privateLists : []),
    ...(lists.kind === 'private' && lists.sourcesText !== undefined ? privateSources : []),
    'Acquire::Languages "none";',
    'Acquire::Retries "2";',
    'APT::Update::Error-Mode "any";',
    'APT::Sandbox::User "root";',
    '',
  ].join('\n')
}

async function requireProgram(name: string, tool: FindToolOptions): Promise<string> {
  const path = await findOnPath(name, tool.env)
  if (path === undefined) throw new InstallError(`${name} is not on PATH, so this is no Debian system`)
  return path
}
