import * as z from 'zod'
import { loadScript } from '../../../redis/load-script.ts'
import type { RedisConnection, RedisScript } from '../../../redis/redis-connection.ts'
import type { SessionKey } from '../../../sessions/session-record.ts'
import type { ClaimOutcome, SlotContent, SlotLedger } from '../slot-ledger.ts'

/** The ledger that all gateway processes share: one Redis hash, one script per step, Redis' own clock. */
export const createRedisSlotLedger = (redis: RedisConnection): SlotLedger => {
  const keys = [`${redis.keyPrefix}kv:slots`]
  const scripts = loadScripts()
  const run = (script: RedisScript, ...args: readonly (string | number)[]): Promise<unknown> =>
    redis.run(script, keys, args)
  return {
    claim: async ({ pod, session, turnId, leaseMs, loadMs, slots }) => {
      const reply = await run(scripts.claim, pod, session, turnId, leaseMs, loadMs, JSON.stringify(slots))
      return reply === null ? { kind: 'no-room' } : parseClaim(reply)
    },
    reload: async ({ pod, slot, turnId, revision, loadMs }) =>
      (await run(scripts.reload, pod, slot, turnId, revision, loadMs)) === 1,
    settle: async ({ pod, slot, turnId, content, closeMs }) =>
      (await run(scripts.settle, pod, slot, turnId, formatContent(content), closeMs)) === 1,
    beginSave: async ({ pod, slot, turnId, session, leaseMs }) =>
      beginSaveReply.parse(await run(scripts.beginSave, pod, slot, turnId, session, leaseMs)),
    release: async ({ pod, slot, turnId, content }) =>
      countReply.parse(
        await run(scripts.release, pod, slot, turnId, content === undefined ? '' : formatContent(content)),
      ),
    slotsOf: async (session: SessionKey) => namesReply.parse(await run(scripts.slotsOf, session)).map(parseName),
    addTrace: async ({ pod, slot, session }) => {
      await run(scripts.addTrace, pod, slot, session)
    },
    list: async () =>
      entriesReply.parse(await run(scripts.list)).map(([name, inUse, needsWipe, kind, mark]) => ({
        ...parseName(name),
        inUse: inUse === 1,
        needsWipe: needsWipe === 1,
        kind,
        mark: mark === '' ? undefined : mark,
      })),
    seize: async ({ pod, slot, turnId, session, leaseMs }) =>
      seizeReply.parse(await run(scripts.seize, pod, slot, turnId, session ?? '', leaseMs)),
    wiped: async ({ pod, slot, turnId }) => (await run(scripts.wiped, pod, slot, turnId)) === 1,
    forgetPod: async (pod) => {
      await run(scripts.forgetPod, pod)
    },
  }
}

const loadScripts = () => {
  const directory = new URL('./scripts/', import.meta.url)
  const script = (name: string): RedisScript => loadScript(directory, name)
  return {
    claim: script('claim'),
    reload: script('reload'),
    settle: script('settle'),
    beginSave: script('begin-save'),
    release: script('release'),
    slotsOf: script('slots-of'),
    addTrace: script('add-trace'),
    list: script('list'),
    seize: script('seize'),
    wiped: script('wiped'),
    forgetPod: script('forget-pod'),
  }
}

const contentSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('clean') }),
  z.object({ kind: z.literal('unknown') }),
  z.object({
    kind: z.literal('holds'),
    artefactId: z.string().optional(),
    tokens: z.number().int(),
    mark: z.string(),
  }),
])

const claimReply = z.object({
  slot: z.number().int(),
  role: z.enum(['load', 'wait', 'check']),
  content: contentSchema,
  others: z.number().int(),
  revision: z.number().int(),
})
const beginSaveReply = z.enum(['held', 'superseded', 'lost'])
const seizeReply = z.enum(['seized', 'in-use', 'nothing-to-do'])
const countReply = z.number().int()
const namesReply = z.array(z.string())
const entriesReply = z.array(
  z.tuple([z.string(), z.number(), z.number(), z.enum(['clean', 'unknown', 'holds']), z.string()]),
)

const parseClaim = (reply: unknown): ClaimOutcome => {
  const { content, ...claim } = claimReply.parse(JSON.parse(z.string().parse(reply)))
  return {
    kind: 'claimed',
    ...claim,
    content: content.kind === 'holds' ? { ...content, artefactId: content.artefactId } : content,
  }
}

const formatContent = (content: SlotContent): string => JSON.stringify(content)

/** `<pod>|<slot>` */
const parseName = (name: string): { readonly pod: string; readonly slot: number } => {
  const bar = name.lastIndexOf('|')
  return { pod: name.slice(0, bar), slot: Number(name.slice(bar + 1)) }
}
