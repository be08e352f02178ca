import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { ManagedChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import { findRedis } from './install/find-redis.ts'
import { ownEnvironment, toolsDir } from './paths.ts'
import { type Launch, startServer } from './start-server.ts'
import { prints } from './wait-until-ready.ts'

/** A Redis of our own on 127.0.0.1. */
export interface StartRedisOptions extends Launch {
  /** The working folder, where an append-only file would lie; made when it is missing. Default: that for temporary files. */
  readonly dir?: string | undefined
  /** Default: a free one. */
  readonly port?: number | undefined
  /** Required from every client. Default: none. */
  readonly password?: string | undefined
  /** Writes beyond it are refused (`noeviction`). Default: no limit. */
  readonly maxmemoryBytes?: number | undefined
  /** `append-only` writes every change to the disk before it is answered, so that a restart on the same `dir` finds it. Default: `none`. */
  readonly persistence?: 'none' | 'append-only' | undefined
}

/** A Redis that answers. */
export interface RunningRedis {
  /** With the password, if there is one. */
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
    name: 'redis-server',
    // The configuration goes through standard input: a password among the arguments could be read by every user.
    command: [...tool.command, '-'],
    stdin: redisConfiguration({ ...options, dir, port }),
    ready: prints(/Ready to accept connections/),
  })
  const login = options.password === undefined ? '' : `:${encodeURIComponent(options.password)}@`
  return { url: `redis://${login}127.0.0.1:${port}`, port, child }
}

const redisConfiguration = (options: StartRedisOptions & { readonly dir: string; readonly port: number }): string => {
  const appendOnly = options.persistence === 'append-only'
  return [
    'bind 127.0.0.1',
    `port ${options.port}`,
    `dir ${quote(options.dir)}`,
    'save ""',
    `appendonly ${appendOnly ? 'yes' : 'no'}`,
    ...(appendOnly ? ['appendfsync always'] : []),
    ...(options.password === undefined ? [] : [`requirepass ${quote(options.password)}`]),
    ...(options.maxmemoryBytes === undefined ? [] : [`maxmemory ${options.maxmemoryBytes}`]),
    'maxmemory-policy noeviction',
    'daemonize no',
    '',
  ].join('\n')
}

const quote = (value: string): string => `"${value.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`
