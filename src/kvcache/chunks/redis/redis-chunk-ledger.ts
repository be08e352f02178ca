import * as z from 'zod'
import { loadScript } from '../../../redis/load-script.ts'
import type { RedisConnection, RedisScript } from '../../../redis/redis-connection.ts'
import { clampCount } from '../../../sessions/limits.ts'
import type { ChunkHolder, ChunkLedger } from '../chunk-ledger.ts'

/**
 * The ledger that all gateway processes share: one script and one round trip per step, Redis' own clock. Needs Redis 7 or newer, and one that
 * does not evict keys. Keys carry salts and names, values carry hashes.
 */
export const createRedisChunkLedger = (redis: RedisConnection): ChunkLedger => {
  const scripts = loadScripts()
  const prefix = `${redis.keyPrefix}kv:chunks:`
  const turnKeys = [`${prefix}open`, `${prefix}unsettled`, `${prefix}marks`]
  const chunkKeys = ({ salt, name }: ChunkHolder): readonly string[] => {
    const word = toWord(salt)
    return [
      `${prefix}held:${word}:${name}`,
      `${prefix}holders:${word}`,
      `${prefix}claimed:${word}:${name}`,
      `${prefix}claimers:${word}`,
    ]
  }
  return {
    open: async ({ salt, turnId, leaseMs }) => {
      await redis.run(scripts.open, turnKeys, [toWord(salt), turnId, clampCount(leaseMs)])
    },
    settle: async ({ salt, turnId, tidy }) => {
      await redis.run(scripts.settle, turnKeys, [toWord(salt), turnId, tidy ? 'tidy' : 'untidy'])
    },
    hold: async (artefact) =>
      (await redis.run(scripts.hold, chunkKeys(artefact), [JSON.stringify(artefact.chunks)])) === 1
        ? 'held'
        : 'being-deleted',
    release: async (artefact) => {
      const [unheld, lastOfSalt] = releaseReply.parse(await redis.run(scripts.release, chunkKeys(artefact), []))
      return { unheld, lastOfSalt: lastOfSalt === 1 }
    },
    deleted: async (artefact) => {
      await redis.run(scripts.deleted, chunkKeys(artefact), [])
    },
    claimUnheld: async (sweep) =>
      chunksReply.parse(await redis.run(scripts.claimUnheld, chunkKeys(sweep), [JSON.stringify(sweep.chunks)])),
    unsettled: async (limit) =>
      unsettledReply
        .parse(await redis.run(scripts.unsettled, turnKeys, [clampCount(limit)]))
        .map(([word, mark, ageMs]) => ({ salt: decodeURIComponent(word), mark, ageMs })),
    swept: async ({ salt, mark }) => {
      await redis.run(scripts.swept, turnKeys, [toWord(salt), mark])
    },
  }
}

const loadScripts = () => {
  const directory = new URL('./scripts/', import.meta.url)
  const script = (name: string): RedisScript => loadScript(directory, name)
  return {
    open: script('open'),
    settle: script('settle'),
    hold: script('hold'),
    release: script('release'),
    deleted: script('deleted'),
    claimUnheld: script('claim-unheld'),
    unsettled: script('unsettled'),
    swept: script('swept'),
  }
}

/** A salt without a colon, which ends it in keys and members. Hex stays as it is. */
const toWord = (salt: string): string => encodeURIComponent(salt)

const chunksReply = z.array(z.string())
const releaseReply = z.tuple([chunksReply, z.number()])
const unsettledReply = z.array(z.tuple([z.string(), z.string(), z.number()]))
