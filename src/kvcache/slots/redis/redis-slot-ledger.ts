import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { loadScript } from '../../../redis/load-script.ts'
import type { RedisConnection } from '../../../redis/redis-connection.ts'
import type { SessionKey } from '../../../sessions/session-record.ts'
import { lateEndMs, type SlotLedger, type SlotTurn } from '../slot-ledger.ts'

/** What cannot be read counts as unknown. */
const owner = z
  .custom<SessionKey>((value) => typeof value === 'string')
  .optional()
  .catch(undefined)
const content = z
  .object({ artefactId: z.string().optional(), createdAtMs: z.int().optional(), tokens: z.int(), mark: z.string() })
  .optional()
  .catch(undefined)
const json = z.string().transform((text): unknown => JSON.parse(text))

const claimReply = z.union([
  z.literal('wait').transform((kind) => ({ kind })),
  z.null().transform(() => ({ kind: 'no-room' as const })),
  json.pipe(z.object({ slot: z.number(), content }).transform((claim) => ({ kind: 'claimed' as const, ...claim }))),
])
const renewReply = z.array(z.number().transform((held) => held === 1))
const listReply = z.array(json.pipe(z.object({ slot: z.number(), owner, content, inUse: z.boolean(), user: owner })))
const seizeReply = z.union([z.null().transform(() => undefined), json.pipe(z.object({ owner, content }))])

/** The ledger that all gateways share: one Redis hash for each pod, one script for each step, Redis' own clock. */
export const createRedisSlotLedger = (redis: RedisConnection): SlotLedger => {
  const script = (name: string) => loadScript(new URL('./scripts/', import.meta.url), name)
  const [claim, renew, release] = [script('claim'), script('renew'), script('release')]
  const [list, seize] = [script('list'), script('seize')]
  const channel = `${redis.keyPrefix}kv:released`
  /** This process knows of its own releases without a message. */
  const sender = randomUUID()
  let released = (_pod: string): void => {}
  const keyOf = (pod: string): string => `${redis.keyPrefix}kv:slots:${pod}`
  return {
    claim: async ({ pod, session, turnId, leaseMs, artefactId = '', isLong = false, mayWait, slots }) => {
      const flags = [mayWait ? '1' : '', isLong ? '1' : '']
      const args = [session, turnId, leaseMs, artefactId, ...flags, JSON.stringify(slots)]
      return claimReply.parse(await redis.run(claim, [keyOf(pod)], args))
    },
    renew: async (turns, { leaseMs, saving = false }) => {
      const renewAt = async ([pod, ofPod]: readonly [string, readonly SlotTurn[]]) => {
        const args = ofPod.flatMap(({ slot, turnId }) => [slot, turnId])
        const held = renewReply.parse(await redis.run(renew, [keyOf(pod)], [leaseMs, saving ? '1' : '', ...args]))
        return ofPod.filter((_turn, index) => held[index])
      }
      // A call for each pod: in a cluster, their hashes are at several nodes.
      const held = new Set((await Promise.all([...Map.groupBy(turns, ({ pod }) => pod)].map(renewAt))).flat())
      return turns.map((turn) => held.has(turn))
    },
    release: async ({ pod, slot, turnId, content: left }) => {
      const args = [slot, turnId, left === undefined ? '' : JSON.stringify(left), channel, `${sender} ${pod}`]
      if ((await redis.run(release, [keyOf(pod)], args)) === 1) released(pod)
    },
    onRelease: (listener) => {
      released = listener
      redis.subscribe(channel, (message) => {
        const [from, pod] = message.split(' ')
        if (from !== sender && pod !== undefined) released(pod)
      })
    },
    list: async (pod) => listReply.parse(await redis.run(list, [keyOf(pod)], [lateEndMs])),
    seize: async ({ pod, slot, turnId, leaseMs, session = '' }) =>
      seizeReply.parse(await redis.run(seize, [keyOf(pod)], [slot, turnId, leaseMs, session])),
  }
}
