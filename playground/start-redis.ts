import { mkdir } from 'node:fs/promises'
import { type ManagedChild, startChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import type { ServerTool } from './install/find-tool.ts'
import { readyOrKilled } from './wait-until-ready.ts'

/** A Redis of our own on 127.0.0.1. */
export interface StartRedisOptions {
  /** From `findRedis`. */
  readonly tool: ServerTool
  /** The working folder, where an append-only file would lie; made when it is missing. */
  readonly dir: string
  /** Default: a free one. */
  readonly port?: number | undefined
  /** Asked of every client. Default: none. */
  readonly password?: string | undefined
  /** Writes beyond it are refused (`noeviction`). Default: no limit. */
  readonly maxmemoryBytes?: number | undefined
  /** `append-only` writes every change to the disk before it is answered, so that a restart on the same `dir` finds it. Default: `none`. */
  readonly persistence?: 'none' | 'append-only' | undefined
  readonly signal?: AbortSignal | undefined
}

/** A Redis that answers. */
export interface RunningRedis {
  /** With the password, if there is one. */
  readonly url: string
  readonly port: number
  readonly child: ManagedChild
}

/**
 * Starts Redis and waits until it takes connections.
 * @throws NotReadyError
 */
export async function startRedis(options: StartRedisOptions): Promise<RunningRedis> {
  const port = options.port ?? (await freePort())
  await mkdir(options.dir, { recursive: true })
  const child = await startChild({
    name: 'redis-server',
    // The configuration goes through standard input: a password among the arguments could be read by every user.
    command: [...options.tool.command, '-'],
    stdin: redisConfiguration({ ...options, port }),
  })
  await readyOrKilled(child, { kind: 'line', pattern: /Ready to accept connections/ }, { signal: options.signal })
  const login = options.password === undefined ? '' : `:${encodeURIComponent(options.password)}@`
  return { url: `redis://${login}127.0.0.1:${port}`, port, child }
}

/** The configuration file's text. */
export function redisConfiguration(options: Omit<StartRedisOptions, 'tool'> & { readonly port: number }): string {
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

function quote(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`
}
