import { createHash } from 'node:crypto'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../paths.ts'
import type { FindToolOptions } from './find-tool.ts'
import { InstallError, installOnce, runInstaller } from './install-once.ts'

/** The prebuilt CPU package of node-llama-cpp for each `process.platform` and `process.arch`. */
const platformPackages: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'darwin-arm64': 'mac-arm64-metal',
  'darwin-x64': 'mac-x64',
}

/**
 * The folder of llama.cpp for the embedded engine: node-llama-cpp without its fourteen platform packages (725 MB), and
 * the one prebuilt package that this machine needs (30 MB to download). Nothing is compiled, no install script runs.
 * @throws InstallError
 */
export const installLlamaRuntime = async (options: FindToolOptions): Promise<string> => {
  const platform = `${process.platform}-${process.arch}`
  const platformPackage = platformPackages[platform]
  if (platformPackage === undefined) {
    throw new InstallError(`llama.cpp has no prebuilt binary for ${platform}; set PODS to engines of your own`)
  }
  const source = join(packageRoot(), 'playground/engine/runtime-package')
  const lock = await readFile(join(source, 'package-lock.json'), 'utf8')
  const [, version] = /"node-llama-cpp": "([^"]+)"/.exec(lock) ?? []
  const digest = createHash('sha256').update(lock).update(platform).digest('hex').slice(0, 8)
  const directory = join(options.toolsDir, `llama-runtime-${digest}`)
  await installOnce({
    directory,
    install: async (into) => {
      options.report?.(`npm installs node-llama-cpp ${version} into ${directory}`)
      await cp(source, into, { recursive: true })
      const flags = ['--no-save', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
      const command = ['npm', 'install', ...flags, `@node-llama-cpp/${platformPackage}@${version}`] as const
      await runInstaller(command, { ...options, cwd: into })
    },
  })
  return directory
}
