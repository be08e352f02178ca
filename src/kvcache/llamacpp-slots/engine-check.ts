import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { EngineFinding } from '../kv-connector.ts'
import { slotsAnswer } from '../slots/slot-client.ts'
import { leaseMs } from './open-claims.ts'
import { endInTime, type Parts, releaseSlot } from './parts.ts'

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })).min(1) })

/** The tokens of a completion's prompt that slot or engine held. */
const completionAnswer = z
  .object({ usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }) }) })
  .transform(({ usage }) => usage.prompt_tokens_details.cached_tokens)

/** Two random prompts share a few tokens (the model's own, and by chance); of a kept prompt, some 35 are cached. */
const maxCommonTokens = 8

/**
 * Finds out whether the engine keeps prompts that no slot holds and gives them to whoever sends them (llama-server
 * without `--cache-ram 0`). llama-server does not report this. Three requests of some 36 tokens and one token of
 * response show it in an idle slot: a prompt, another one, the first again, which is cached only if kept elsewhere. The
 * slot's session then loads its KV from the store. Emptying the slot at the end shows whether slots can be saved.
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
      const prompts = [randomUUID(), randomUUID()] as const
      let cached = 0
      for (const prompt of [prompts[0], prompts[1], prompts[0]]) {
        const body = { model: data[0]?.id, prompt, id_slot: slot, cache_prompt: true, max_tokens: 1 }
        cached = await client.ask({ pod, path: '/v1/completions', body }, completionAnswer, signal)
      }
      if (cached > maxCommonTokens) findings.push({ kind: 'engine_shares_kv', text: sharesKv(pod) })
    } catch (cause) {
      await releaseSlot(parts, place)
      throw cause
    }
    const end = await endInTime(parts, place, client.erase(place), { signal })
    if (end !== undefined) await releaseSlot(parts, place)
    return end?.kind === 'refused' ? [...findings, savesNothing(pod)] : findings
  }
  throw new Error('no slot is idle')
}

const savesNothing = (pod: string): EngineFinding => ({
  kind: 'engine_saves_nothing',
  text: `The engine ${pod} has no slots that can be saved, so that no KV is loaded or stored: start llama-server with --slots and --slot-save-path, or select another connector (kv.connector)`,
})

const sharesKv = (pod: string): string =>
  `The engine ${pod} keeps prompts in memory and gives their KV to any session, also after their deletion: start llama-server with --cache-ram 0`
