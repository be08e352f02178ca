import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { ManagedChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import { findRedis } from './install/find-redis.ts'
import { ownEnvironment, toolsDir } from './paths.ts'
import { flags } from './run-command.ts'
import { type Launch, startServer } from './start-server.ts'
import { prints } from './wait-until-ready.ts'

/** A Redis of our own on 127.0.0.1. */
export interface StartRedisOptions extends Launch {
  /** The working folder, for an append-only file; made when it is missing. Default: that for temporary files. */
  readonly dir?: string | undefined
  /** Default: a free one. */
  readonly port?: number | undefined
  /** Writes every change to the disk before the answer: a restart on `dir` finds it. Default: nothing. */
  readonly appendOnly?: boolean | undefined
  /** Further settings by name, as in redis.conf. Default: none. */
  readonly settings?: Readonly<Record<string, string | number>>
}

/** A Redis that answers. */
export interface RunningRedis {
  readonly url: string
  readonly port: number
  readonly child: ManagedChild
}

/**
 * Finds or installs Redis, starts it and waits until it accepts connections.
 * @throws InstallError, NotReadyError, or the signal's reason
 */
export const startRedis = async (options: StartRedisOptions): Promise<RunningRedis> => {
  const { env = ownEnvironment(), port = await freePort(), dir = tmpdir(), onLine: report, signal } = options
  const tool = await findRedis({ env, toolsDir: toolsDir(env), report, signal })
  await mkdir(dir, { recursive: true })
  const child = await startServer({
    ...options,
    name: 'redis',
    command: [
      ...tool.command,
      ...flags({
        bind: '127.0.0.1',
        port,
        dir,
        save: '',
        appendonly: options.appendOnly ? 'yes' : 'no',
        appendfsync: options.appendOnly ? 'always' : undefined,
        ...options.settings,
      }),
    ],
    ready: prints(/Ready to accept connections/),
  })
  return { url: `redis://127.0.0.1:${port}`, port, child }
}
