import { nanoid } from 'nanoid'
import type { Evicted, KvLimit } from '../limits.ts'
import { clampCount } from '../limits.ts'
import type { Removal, RemovalQueue } from '../removal-queue.ts'
import type { SessionKey } from '../session-record.ts'
import { readAll, type ScriptRunner } from './session-script-runner.ts'
import { assertId, escapeLine, unescapeLine } from './session-text.ts'

/** Artefacts that one script looks up, and drops: a script holds up the turns of all sessions. */
const artefactsPerLookup = 500
const artefactsPerDrop = 200

const readRemoval = (claimed: unknown, claim: string): Removal => {
  const [id, attempt, session, payload] = readAll(claimed, (item) => item)
  return {
    id: String(id),
    session: String(session) as SessionKey,
    kind: String(id).startsWith('s:') ? 'session' : 'artefact',
    payload: typeof payload === 'string' ? unescapeLine(payload) : undefined,
    attempt: Number(attempt),
    claim,
  }
}

/** The removal queue's half of the Redis store. */
export const createRedisRemovals = ({
  run,
  kvLimit,
  onEvicted,
}: {
  readonly run: ScriptRunner
  readonly kvLimit: KvLimit | undefined
  readonly onEvicted: (what: Evicted, count: number) => void
}): RemovalQueue => ({
  async announce({ artefactId, session, payload, graceMs }) {
    await run('announce', [assertId(artefactId), assertId(session), escapeLine(payload), clampCount(graceMs)])
  },

  async expireDue(limit) {
    const [ended = 0, looked = 0] = readAll((await run('expire-due', [limit])).detail, Number)
    return { ended, hasMore: looked >= limit }
  },

  async evict(limit) {
    if (kvLimit === undefined) return 0
    const dropped = Number((await run('evict', [clampCount(kvLimit.maxBytes * kvLimit.threshold), limit])).detail)
    if (dropped > 0) onEvicted('kv-size', dropped)
    return dropped
  },

  async claim({ limit, leaseMs }) {
    const claim = nanoid(12)
    const { detail } = await run('claim', [limit, clampCount(leaseMs), claim])
    return readAll(detail, (claimed) => readRemoval(claimed, claim))
  },

  async ack(removals) {
    const args: string[] = []
    for (const { id, claim } of removals) args.push(id, claim)
    await run('ack', args)
  },

  async retryLater({ id, claim }, delayMs) {
    await run('retry-later', [id, clampCount(delayMs), claim])
  },

  async knownArtefacts(artefactIds) {
    const known = new Set<string>()
    for (let start = 0; start < artefactIds.length; start += artefactsPerLookup) {
      const reply = await run('known-artefacts', artefactIds.slice(start, start + artefactsPerLookup))
      for (const artefactId of readAll(reply.detail, String)) known.add(artefactId)
    }
    return known
  },

  async dropArtefacts({ artefactIds, reason }) {
    let dropped = 0
    for (let start = 0; start < artefactIds.length; start += artefactsPerDrop) {
      const some = artefactIds.slice(start, start + artefactsPerDrop).map(assertId)
      dropped += Number((await run('drop-artefacts', [escapeLine(reason), ...some])).detail)
    }
    return dropped
  },

  async counts() {
    const [removals = 0, sessions = 0] = readAll((await run('totals', [])).detail, Number)
    return { removals, sessions }
  },

  async sizes() {
    const [, , kvBytes] = readAll((await run('totals', [])).detail, Number)
    return { kvBytes: kvLimit === undefined ? undefined : kvBytes, sessionBytes: undefined }
  },
})
