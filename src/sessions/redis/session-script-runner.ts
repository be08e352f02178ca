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

/** Runs a session script; `name` is that of a file in `scripts/`. @throws StoreUnavailableError */
export type ScriptRunner = (name: SessionScriptName, args: readonly (string | number)[]) => Promise<ScriptReply>

const scriptNames = [
  'abandon',
  'ack',
  'announce',
  'begin',
  'claim',
  'commit-kv',
  'complete',
  'create',
  'drop-artefacts',
  'drop-kv',
  'evict',
  'expire-due',
  'get',
  'known-artefacts',
  'list',
  'set-kv-status',
  'remove',
  'retry-later',
  'set-ttl',
  'totals',
] as const

export type SessionScriptName = (typeof scriptNames)[number]

const scriptFolder = new URL('scripts/', import.meta.url)

export const createScriptRunner = (options: {
  readonly connection: RedisConnection
  readonly tombstoneSeconds: number
  readonly onCorrupted: () => void
}): ScriptRunner => {
  const { connection, onCorrupted } = options
  const scripts = new Map(scriptNames.map((name) => [name, loadScript(scriptFolder, name)] as const))
  const tombstoneMs = clampCount(options.tombstoneSeconds * 1000)

  return async (name, args) => {
    const script = scripts.get(name)
    if (script === undefined) throw new Error(`No script ${name}`)
    const reply = await toStoreFault(connection.run(script, [], [connection.keyPrefix, tombstoneMs, ...args]))
    if (!Array.isArray(reply)) throw new Error(`Script ${name} replied in an unknown form`)
    const [corrupted, outcome, nowMs, detail] = reply
    for (let count = 0; count < Number(corrupted); count++) onCorrupted()
    return { outcome: String(outcome), nowMs: Number(nowMs), detail }
  }
}

/** @throws StoreUnavailableError for a Redis that is unavailable; every other fault passes unchanged. */
export const toStoreFault = async <T>(answer: Promise<T>): Promise<T> => {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof RedisUnavailableError)) throw error
    throw new StoreUnavailableError('The session store cannot be reached', { cause: error })
  }
}
