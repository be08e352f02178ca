import { symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { installDebianPackages } from './debian/install-packages.ts'
import { filesMatching, libraryFolders } from './debian/library-folders.ts'
import { findTool, type VersionVerdict } from './find-tool.ts'
import { InstallError } from './install-once.ts'
import type { Command, FindToolOptions, ToolOutcome } from './server-tool.ts'

/**
 * llama.cpp's llama-server: `LLAMA_SERVER_BIN`, else `llama-server` on `PATH`, else Debian sid's llama.cpp-tools
 * unpacked into `<tools>/llama-server` together with every library it needs down to sid's own C library and loader, so
 * that it runs on an older Debian too. Where that is not possible the answer is a reason, and tests that want a foreign
 * engine leave it out.
 */
export function findLlamaServer(options: FindToolOptions): Promise<ToolOutcome> {
  return findTool(
    {
      name: 'llama-server',
      variable: 'LLAMA_SERVER_BIN',
      program: 'llama-server',
      remedy: 'Set LLAMA_SERVER_BIN to a llama-server to use one.',
      judge: judgeLlamaServerVersion,
      directory: join(options.toolsDir, 'llama-server'),
      install: (into) => installLlamaServer(into, options),
      installedCommand,
    },
    options,
  )
}

/** Reads `version: 0.7.0 (build 11669, …)` or upstream's `version: 5882 (0a1b2c3)`. */
export function judgeLlamaServerVersion(output: string): VersionVerdict {
  const version = /^version: (\S+)/m.exec(output)?.[1]
  return version === undefined ? { ok: false, reason: 'it does not tell a version' } : { ok: true, version }
}

async function installLlamaServer(into: string, options: FindToolOptions): Promise<void> {
  await installDebianPackages({
    into,
    packages: ['llama.cpp-tools'],
    isNeeded: () => true,
    suite: 'sid',
    label: 'llama-server',
    tool: options,
  })
  await linkBackends(into)
}

/**
 * ggml looks for its CPU backends in a fixed system folder and beside the running executable, which under a private
 * loader is the loader itself.
 */
async function linkBackends(into: string): Promise<void> {
  const loader = await loaderOf(into)
  const folder = join(loader, '..')
  for (const backend of await filesMatching(join(into, 'usr/lib'), /\/ggml\/[^/]+\/libggml-[^/]+\.so$/)) {
    await symlink(relative(folder, backend), join(folder, backend.slice(backend.lastIndexOf('/') + 1)))
  }
}

async function installedCommand(directory: string): Promise<Command> {
  return [
    '/usr/bin/env',
    // Otherwise an abort starts a debugger where one is installed, and the server lingers.
    'GGML_NO_BACKTRACE=1',
    await loaderOf(directory),
    '--library-path',
    (await libraryFolders(directory)).join(':'),
    join(directory, 'usr/bin/llama-server'),
  ]
}

async function loaderOf(directory: string): Promise<string> {
  const [loader] = await filesMatching(join(directory, 'usr/lib'), /^[^/]+\/ld-linux[^/]*\.so\.\d+$/)
  if (loader === undefined) throw new InstallError('the unpacked C library has no program loader')
  return loader
}
