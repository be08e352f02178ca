import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { installOnce, runInstaller } from '../../playground/install/install-once.ts'
import { ownEnvironment, toolsDir } from '../../playground/paths.ts'
import { packages } from './agents.ts'

/**
 * The folder `node_modules` with the agents (370 MB to download, 1 GB on disk), installed on first use. No install script runs.
 * @throws InstallError
 */
export const installAgents = async (): Promise<string> => {
  const names = Object.values(packages)
  const directory = join(toolsDir(), `agents-${names.map((name) => name.split('@').at(-1)).join('-')}`)
  await installOnce({
    directory,
    install: async (into) => {
      await writeFile(join(into, 'package.json'), '{"private":true}')
      const flags = ['--no-package-lock', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']
      await runInstaller(['npm', 'install', ...flags, ...names], { env: ownEnvironment(), cwd: into })
    },
  })
  return join(directory, 'node_modules')
}
