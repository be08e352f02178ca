import { loadScript } from '../../redis/load-script.ts'
import { type RedisConnection, type RedisScript, RedisUnavailableError } from '../../redis/redis-connection.ts'
import { clampCount } from '../limits.ts'
import { StoreUnavailableError } from '../session-store.ts'

/** What a script says: its outcome, the time by Redis' clock, and what belongs to the outcome. */
export interface ScriptReply {
  readonly outcome: string
  readonly nowMs: number
  readonly detail: unknown
}

/** Runs a session script; `name` is that of a file in `scripts/`. @throws StoreUnavailableError */
export type ScriptRunner = (name: SessionScriptName, args: readonly (string | number)[]) => Promise<ScriptReply>

/** Runs `turns.lua`, whose answer is one text. @throws StoreUnavailableError */
export type TurnsRunner = (turns: string) => Promise<string>

export interface SessionScripts {
  readonly run: ScriptRunner
  readonly runTurns: TurnsRunner
}

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
  'retry-later',
  'remove',
  'set-ttl',
  'ack',
  'sizes',
] as const

export type SessionScriptName = (typeof scriptNames)[number]

const scriptFolder = new URL('scripts/', import.meta.url)

export const createSessionScripts = (options: {
  readonly connection: RedisConnection
  readonly tombstoneSeconds: number
  readonly onCorrupted: () => void
}): SessionScripts => {
  const { connection, onCorrupted } = options
  const scripts = new Map(scriptNames.map((name) => [name, loadScript(scriptFolder, name)] as const))
  const turnsScript = loadScript(scriptFolder, 'turns')
  const tombstoneMs = clampCount(options.tombstoneSeconds * 1000)

  const call = async (script: RedisScript, args: readonly (string | number)[]): Promise<unknown> => {
    const all: (string | number)[] = [connection.keyPrefix, tombstoneMs]
    for (const argument of args) all.push(argument)
    try {
      return await connection.run(script, [], all)
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error
      throw new StoreUnavailableError('The session store cannot be reached', { cause: error })
    }
  }

  return {
    run: async (name, args) => {
      const script = scripts.get(name)
      if (script === undefined) throw new Error(`No script ${name}`)
      const reply = await call(script, args)
      if (!Array.isArray(reply)) throw unknownForm(name)
      const [corrupted, outcome, nowMs, detail] = reply
      for (let count = 0; count < Number(corrupted); count++) onCorrupted()
      return { outcome: String(outcome), nowMs: Number(nowMs), detail }
    },
    runTurns: async (turns) => {
      const reply = await call(turnsScript, [turns])
      if (typeof reply !== 'string') throw unknownForm(turnsScript.name)
      return reply
    },
  }
}

const unknownForm = (name: string): Error => new Error(`Script ${name} answered in an unknown form`)
