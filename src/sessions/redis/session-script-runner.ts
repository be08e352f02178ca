import { loadScript } from '../../redis/load-script.ts'
import { type RedisConnection, RedisUnavailableError } from '../../redis/redis-connection.ts'
import { StoreUnavailableError } from '../session-store.ts'
import { toWhole } from '../whole-number.ts'

/** What a script says: its outcome, the time by Redis' clock, and what belongs to the outcome. */
export interface ScriptReply {
  readonly outcome: string
  readonly nowMs: number
  readonly detail: unknown
}

/** Runs the session scripts; `name` is that of a file in `scripts/`. */
export type ScriptRunner = (name: SessionScriptName, args: readonly (string | number)[]) => Promise<ScriptReply>

const scriptNames = [
  'abandon',
  'announce',
  'begin',
  'claim',
  'commit-kv',
  'complete',
  'counts',
  'create',
  'drop-artefacts',
  'drop-kv',
  'evict',
  'expire-due',
  'get',
  'known-artefacts',
  'list',
  'note-kv',
  'postpone',
  'remove',
  'set-ttl',
  'settle',
  'sizes',
  'turns',
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
  const tombstoneMs = toWhole(options.tombstoneSeconds * 1000)

  return async (name, args) => {
    const script = scripts.get(name)
    if (script === undefined) throw new Error(`No script ${name}`)
    let reply: unknown
    try {
      const all: (string | number)[] = [connection.keyPrefix, tombstoneMs]
      for (const argument of args) all.push(argument)
      reply = await connection.run(script, [], all)
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error
      throw new StoreUnavailableError('The session store cannot be reached', { cause: error })
    }
    if (!Array.isArray(reply)) throw new Error(`Script ${name} answered in an unknown form`)
    const [corrupted, outcome, nowMs, detail] = reply
    for (let count = 0; count < Number(corrupted); count++) onCorrupted()
    return { outcome: String(outcome), nowMs: Number(nowMs), detail }
  }
}
