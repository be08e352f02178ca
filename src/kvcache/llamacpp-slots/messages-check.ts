import { randomInt, randomUUID } from 'node:crypto'
import * as z from 'zod'
import { slotsAnswer } from '../slots/slot-client.ts'
import type { SlotTurn } from '../slots/slot-ledger.ts'
import { maxTag } from './claim.ts'
import type { Parts } from './parts.ts'

/** Two random prompts share a few tokens (the model's own, and by chance); of a kept prompt, some 35 are cached. */
export const maxCommonTokens = 8

/** The prompt's tokens that slot or engine held. */
const messagesAnswer = z
  .object({ usage: z.object({ cache_read_input_tokens: z.number() }) })
  .transform(({ usage }) => usage.cache_read_input_tokens)

/**
 * Finds out, in a slot that the check holds, whether an engine takes the gateway's fields on `/v1/messages`: the slot
 * then shows the tag that they had. llama-server ignores them: there, the same message a second time shows whether it
 * starts from KV of others. What is found is kept in `engines`. Returns what the operator has to know of the engine.
 */
export const checkMessages = async (
  { client, engines }: Pick<Parts, 'client' | 'engines'>,
  { pod, slot }: SlotTurn,
  { model, signal }: { readonly model: string | undefined; readonly signal: AbortSignal },
): Promise<string | undefined> => {
  const tag = randomInt(1, maxTag)
  const messages = [{ role: 'user', content: randomUUID() }]
  const body = { model, messages, max_tokens: 1, id_slot: slot, n_keep: tag, cache_prompt: false }
  const cachedTokens = () => client.ask({ pod, path: '/v1/messages', body }, messagesAnswer, signal)
  try {
    await cachedTokens()
    const slots = await client.ask({ pod, path: '/slots' }, slotsAnswer, signal)
    if (slots.find(({ id }) => id === slot)?.keep === tag) engines.tookFieldsOnMessages(pod)
    else if ((await cachedTokens()) > maxCommonTokens) return sharesOnMessages(pod)
  } catch {
    // It has no such path, or cannot be asked: then its turns there hold no slot.
  }
  return undefined
}

const sharesOnMessages = (pod: string): string =>
  `The engine ${pod} starts requests on /v1/messages from KV of any session, whatever the gateway sends: start llama-server with --no-cache-prompt`
