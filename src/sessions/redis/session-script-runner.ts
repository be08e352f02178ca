import { readdirSync } from 'node:fs'
import { loadScript } from '../../redis/load-script.ts'
import { type RedisConnection, RedisUnavailableError } from '../../redis/redis-connection.ts'
import { clampCount } from '../limits.ts'
import { StoreUnavailableError } from '../session-store.ts'

/** A script's reply: its outcome, the time by Redis' clock, and what belongs to the outcome. */
export interface ScriptReply {
  readonly outcome: string
  readonly nowMs: number
  readonly detail: unknown
}

type ScriptArgs = readonly (string | number)[]

/** Reads each item of a reply's detail that must be a list. */
export const readAll = <T>(detail: unknown, read: (item: unknown) => T): readonly T[] => {
  if (!Array.isArray(detail)) throw new Error('A session script answered without a list')
  return detail.map(read)
}

const scriptFolder = new URL('scripts/', import.meta.url)

export interface ScriptRunnerOptions {
  readonly connection: RedisConnection
  readonly tombstoneSeconds: number
  readonly onCorrupted: () => void
}

/** Runs a script of a partition by its `name`, that of a file in `scripts/`. @throws StoreUnavailableError */
export const createScriptRunner = (options: ScriptRunnerOptions) => {
  const { connection, onCorrupted } = options
  const names = readdirSync(scriptFolder).flatMap((file) => /^(.+)\.lua$/.exec(file)?.[1] ?? [])
  const scripts = new Map(names.map((name) => [name, loadScript(scriptFolder, name)]))
  const tombstoneMs = clampCount(options.tombstoneSeconds * 1000)

  return async (name: string, keys: readonly string[], args: ScriptArgs): Promise<ScriptReply> => {
    const script = scripts.get(name)
    if (script === undefined) throw new Error(`No script ${name}`)
    const reply = await connection.run(script, keys, [tombstoneMs, ...args]).catch(toStoreFault)
    if (!Array.isArray(reply)) throw new Error(`Script ${name} replied in an unknown form`)
    const [corrupted, outcome, nowMs, detail] = reply
    for (let count = 0; count < Number(corrupted); count++) onCorrupted()
    return { outcome: String(outcome), nowMs: Number(nowMs), detail }
  }
}

/** @throws StoreUnavailableError for a Redis that is unavailable; every other fault passes unchanged. */
export const toStoreFault = (error: unknown): never => {
  if (!(error instanceof RedisUnavailableError)) throw error
  throw new StoreUnavailableError('The session store cannot be reached', { cause: error })
}
