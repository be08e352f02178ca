import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { EngineFinding } from '../kv-connector.ts'
import { type ActionEnd, slotsAnswer } from '../slots/slot-client.ts'
import type { SlotTurn } from '../slots/slot-ledger.ts'
import { fileOf, partOf } from './artefact.ts'
import { checkMessages, maxCommonTokens } from './messages-check.ts'
import { leaseMs } from './open-claims.ts'
import { endInTime, type Parts, releaseSlot } from './parts.ts'

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })).min(1) })

/** The tokens of a completion's prompt that slot or engine held. */
const completionAnswer = z
  .object({ usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }) }) })
  .transform(({ usage }) => usage.prompt_tokens_details.cached_tokens)

/**
 * Finds out in an idle slot, with requests of some 36 tokens, what llama-server does not report. Whether it keeps
 * prompts that no slot holds and gives them to anybody (without `--cache-ram 0`): a prompt, another, the first again.
 * Whether a slot that is saved and restored is reused: a prompt that continues the last one. And what it does with the
 * fields of a request on `/v1/messages`.
 * @throws Error when it cannot be found out now: no response, no idle slot, or a KV folder of another session store
 */
export const checkEngine = async (
  parts: Parts,
  pod: string,
  signal: AbortSignal,
): Promise<readonly EngineFinding[]> => {
  const { client, engines, ledger } = parts
  engines.forget(pod)
  const { data } = await client.ask({ pod, path: '/v1/models' }, modelsSchema, signal)
  const slots = await client.ask({ pod, path: '/slots' }, slotsAnswer.optional(), signal)
  if (slots === undefined) return [savesNothing(pod)]
  if (!(await parts.folder.isOurs())) throw new Error('the KV folder belongs to another session store')
  const inUse = (await ledger.list(pod)).flatMap((entry) => (entry.inUse ? entry.slot : []))
  const idle = slots.filter(({ busy }) => !busy).sort((one, other) => (one.tokens ?? 0) - (other.tokens ?? 0))
  for (const { id: slot } of idle) {
    const place = { pod, slot, turnId: `check-${randomUUID()}` }
    if (inUse.includes(slot) || (await ledger.seize({ ...place, leaseMs })) === undefined) continue
    parts.claims.add(place)
    const findings: EngineFinding[] = []
    try {
      const isCached = async (prompt: string): Promise<boolean> => {
        const body = { model: data[0]?.id, prompt, id_slot: slot, cache_prompt: true, max_tokens: 1 }
        return (await client.ask({ pod, path: '/v1/completions', body }, completionAnswer, signal)) > maxCommonTokens
      }
      const onMessages = await checkMessages(parts, place, { model: data[0]?.id, signal })
      const prompt = randomUUID()
      await isCached(prompt)
      await isCached(randomUUID())
      const sharing = (await isCached(prompt)) ? sharesKv(pod) : onMessages
      if (sharing !== undefined) findings.push({ kind: 'engine_shares_kv', text: sharing })
      const restored = await saveAndRestore(parts, place, signal)
      if (restored === 'late') return findings
      if (restored === 'refused') findings.push(savesNothing(pod))
      else if (!(await isCached(`${prompt} and so on`)))
        findings.push({ kind: 'engine_reuses_nothing', text: reusesNothing(pod) })
    } catch (cause) {
      await releaseSlot(parts, place)
      throw cause
    }
    const end = await endInTime(parts, place, client.erase(place), { signal })
    if (end !== undefined) await releaseSlot(parts, place)
    return findings
  }
  throw new Error('no slot is idle')
}

/** `late`: the engine is still at it, and the slot is released when that has ended. @throws when the engine is away */
const saveAndRestore = async (
  parts: Parts,
  place: SlotTurn,
  signal: AbortSignal,
): Promise<'restored' | 'refused' | 'late'> => {
  const { client, files } = parts
  const file = partOf(fileOf(place.turnId))
  const steps: readonly (() => Promise<ActionEnd<unknown>>)[] = [
    () => client.save(place, file),
    () => client.erase(place),
    () => client.restore(place, file),
  ]
  try {
    for (const step of steps) {
      const end = await endInTime(parts, place, step(), { signal })
      if (end === undefined) return 'late'
      if (end.kind === 'refused') return 'refused'
      if (end.kind !== 'done') throw end.cause
    }
    return 'restored'
  } finally {
    // What is left goes with the sweep of unfinished files.
    await files.delete(file).catch(() => {})
  }
}

const savesNothing = (pod: string): EngineFinding => ({
  kind: 'engine_saves_nothing',
  text: `The engine ${pod} has no slots that can be saved, so that no KV is loaded or stored: start llama-server with --slots and --slot-save-path, or select another connector (kv.connector)`,
})

const reusesNothing = (pod: string): string =>
  `The engine ${pod} restores slots and computes their prompts again: look for a model with a sliding window or recurrent layers (--swa-full), and for a newer build of llama-server`

const sharesKv = (pod: string): string =>
  `The engine ${pod} keeps prompts in memory and gives their KV to any session, also after their deletion: start llama-server with --cache-ram 0`
