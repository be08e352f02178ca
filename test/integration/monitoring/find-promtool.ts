import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { InstallError, installOnce, runInstaller } from '../../../playground/install/install-once.ts'
import { ownEnvironment, toolsDir } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'

const env = ownEnvironment()

/**
 * Prometheus' checker of rules: `promtool` on PATH, else that of Debian's package `prometheus`, downloaded once (19 MB) and
 * unpacked beside the other tools; nothing of the system changes. @throws InstallError what to install
 */
export const findPromtool = async (): Promise<string> => {
  if ((await runCommand({ command: ['promtool', '--version'], env })).ok) return 'promtool'
  const directory = join(toolsDir(), 'promtool-debian')
  await installOnce({ directory, install: download })
  return join(directory, 'usr/bin/promtool')
}

const download = async (into: string): Promise<void> => {
  try {
    const get = ['apt-get', 'download', 'prometheus'] as const
    const options = { env, cwd: into }
    // A machine that has never asked knows no packages.
    await runInstaller(get, options).catch(async () => {
      await runInstaller(['apt-get', 'update', '-qq'], options)
      await runInstaller(get, options)
    })
    const archive = (await readdir(into)).find((name) => name.endsWith('.deb')) ?? ''
    await runInstaller(['dpkg-deb', '-x', archive, '.'], options)
    await Promise.all([archive, 'usr/bin/prometheus'].map((name) => rm(join(into, name), { force: true })))
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new InstallError(`promtool is missing, and cannot be installed (${cause}): put it on PATH`)
  }
}
