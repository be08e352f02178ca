import { findOnPath } from '../find-on-path.ts'
import { runCommand } from '../run-command.ts'
import type { FindToolOptions } from '../server-tool.ts'

/** The names of the packages that the system has installed; empty where dpkg does not know. */
export async function installedPackages(options: FindToolOptions): Promise<ReadonlySet<string>> {
  const query = await findOnPath('dpkg-query', options.env)
  if (query === undefined) return new Set()
  const outcome = await runCommand({
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own format language
    command: [query, '--show', '--showformat', '${db:Status-Status} ${Package}\n'],
    env: options.env,
    timeoutMs: 30_000,
    signal: options.signal,
  })
  return new Set(outcome.ok ? parseInstalled(outcome.stdout) : [])
}

/** The names on the lines `installed <name>`. */
export function parseInstalled(listing: string): readonly string[] {
  return listing.split('\n').flatMap((line) => /^installed (\S+)$/.exec(line)?.[1] ?? [])
}
