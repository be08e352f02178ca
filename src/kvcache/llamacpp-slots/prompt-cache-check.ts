import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { EngineFinding } from '../kv-connector.ts'
import { leaseMs } from './open-claims.ts'
import { type Parts, releaseSlot } from './parts.ts'

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })).min(1) })

/** Two random prompts begin alike by chance, and with a token of the model's own. Of a prompt that was kept, some 35 tokens are cached. */
const maxCommonTokens = 8

/**
 * Finds out whether the engine keeps prompts in memory that no slot holds any more (llama-server without `--cache-ram 0`), and gives them to
 * whoever sends them. llama-server reports this nowhere, so three requests of some 36 tokens and one token of response show it, in an idle
 * slot: a prompt, another one in its place, the first again, which is cached only if it was kept elsewhere. What the slot held is lost to its
 * session, which loads it again from the store.
 * @throws Error when it cannot be found out now: the engine does not respond, or no slot is idle
 */
export const checkPromptCache = async (
  parts: Parts,
  pod: string,
  signal: AbortSignal,
): Promise<readonly EngineFinding[]> => {
  const { client } = parts
  const { data } = await client.about(pod, '/v1/models', modelsSchema, signal)
  const slots = await client.slots(pod, signal)
  const idle = slots.filter(({ busy }) => !busy).sort((one, other) => (one.tokens ?? 0) - (other.tokens ?? 0))
  for (const { id: slot } of idle) {
    const place = { pod, slot, turnId: `check-${randomUUID()}` }
    if ((await parts.ledger.seize({ ...place, leaseMs })) === undefined) continue
    parts.claims.add(place)
    try {
      const prompts = [randomUUID(), randomUUID()] as const
      let cached = 0
      for (const prompt of [prompts[0], prompts[1], prompts[0]])
        cached = await client.cachedTokens(place, { model: data[0]?.id ?? '', prompt }, signal)
      return cached <= maxCommonTokens ? [] : [{ kind: 'engine_shares_kv', text: sharesKv(pod) }]
    } finally {
      await releaseSlot(parts, place)
    }
  }
  throw new Error('no slot is idle')
}

const sharesKv = (pod: string): string =>
  `The engine ${pod} keeps prompts in memory and gives their KV to any session, also after their deletion: start llama-server with --cache-ram 0`
