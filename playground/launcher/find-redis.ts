import { join } from 'node:path'
import { installDebianPackages } from './debian/install-packages.ts'
import { installedPackages } from './debian/installed-packages.ts'
import { libraryFolders } from './debian/library-folders.ts'
import { findTool, type VersionVerdict } from './find-tool.ts'
import type { Command, FindToolOptions, ToolOutcome } from './server-tool.ts'
import { formatVersion, isAtLeast, parseVersion, type Version } from './version.ts'

const minimumVersion: Version = [7, 0, 0]

/**
 * Redis 7 or newer: `REDIS_BIN`, else `redis-server` on `PATH`, else the packages of this Debian (or Ubuntu) unpacked
 * into `<tools>/redis`, with those libraries that the system lacks. Nothing is installed into the system.
 */
export function findRedis(options: FindToolOptions): Promise<ToolOutcome> {
  return findTool(
    {
      name: 'Redis',
      variable: 'REDIS_BIN',
      program: 'redis-server',
      remedy: 'Install Redis 7 or newer, or set REDIS_BIN to its redis-server.',
      judge: judgeRedisVersion,
      directory: join(options.toolsDir, 'redis'),
      install: (into) => installRedis(into, options),
      installedCommand,
    },
    options,
  )
}

/** Reads `Redis server v=7.0.15 sha=…`. */
export function judgeRedisVersion(output: string): VersionVerdict {
  const version = parseVersion(/\bv=\S+/.exec(output)?.[0] ?? '')
  if (version === undefined) return { ok: false, reason: 'it does not tell a Redis version' }
  if (!isAtLeast(version, minimumVersion)) {
    return { ok: false, reason: `it is ${formatVersion(version)}, ${formatVersion(minimumVersion)} is needed` }
  }
  return { ok: true, version: formatVersion(version) }
}

async function installedCommand(directory: string): Promise<Command> {
  const program = join(directory, 'usr/bin/redis-server')
  const libraries = await libraryFolders(directory)
  return libraries.length === 0 ? [program] : ['/usr/bin/env', `LD_LIBRARY_PATH=${libraries.join(':')}`, program]
}

async function installRedis(into: string, options: FindToolOptions): Promise<void> {
  const present = await installedPackages(options)
  await installDebianPackages({
    into,
    packages: ['redis-server', 'redis-tools'],
    // A second C library beside the system's loader would not fit it.
    isNeeded: (library) => library !== 'libc6' && !present.has(library),
    suite: 'own',
    label: 'Redis',
    tool: options,
  })
}
