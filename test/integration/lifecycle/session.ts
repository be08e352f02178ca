import type OpenAI from 'openai'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { type ContextView, readView } from '../support/sessions.ts'
import type { Stack } from '../support/stack.ts'
import type { Turn } from './conversation.ts'

/** @throws OpenAI.NotFoundError */
export const view = async (client: OpenAI, id: string): Promise<ContextView> =>
  readView(await client.get(`/context/${id}`))

/** Waits until so many turns are counted and the KV of the last one lies in the store. */
export const untilStored = (client: OpenAI, id: string, turns: number): Promise<ContextView> =>
  eventually(async () => {
    const seen = await view(client, id)
    if (seen.turns !== turns || seen.kv.stored?.turn !== turns) {
      throw new Error(`turn ${turns} is not stored: ${JSON.stringify(seen)}`)
    }
    return seen
  })

/** @throws Error when the answer names no session */
export const sessionIdOf = (turn: Pick<Turn, 'headers'>): string => {
  const id = turn.headers.get('x-session-id')
  if (id === null) throw new Error('the answer names no session')
  return id
}

const slots = z.array(z.object({ n_prompt_tokens: z.int(), params: z.object({ n_keep: z.number() }).optional() }))

/** How many tokens of sessions each pod holds: the gateway marks turns of sessions by `n_keep`, which slots repeat. */
export const tokensInPods = (stack: Stack): Promise<readonly number[]> =>
  Promise.all(
    stack.pods.map(async ({ address }) =>
      slots
        .parse((await call(`http://${address}/slots`)).body)
        .filter(({ params }) => (params?.n_keep ?? 0) > 0)
        .reduce((sum, slot) => sum + slot.n_prompt_tokens, 0),
    ),
  )
