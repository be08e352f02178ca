import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'

const requestTimeoutMs = 120_000
const tries = 2000
const pauseMs = 10

/** A request of the bench's one tenant. */
export const call = (
  url: string,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<Response> =>
  fetch(url, {
    ...init,
    headers: { authorization: 'Bearer bench', 'content-type': 'application/json', ...init.headers },
    signal: AbortSignal.timeout(requestTimeoutMs),
  })

const context = z.object({
  turns: z.number(),
  kv: z.object({ pod: z.string().nullable(), stored: z.object({ turn: z.number() }).nullable() }),
})
export type Context = z.infer<typeof context>

/** Gets a session until the condition holds: a turn ends a moment after its answer. */
export const waitForContext = async (url: string, condition: (seen: Context) => boolean): Promise<Context> => {
  let seen: Context | undefined
  for (let count = 0; count < tries; count += 1) {
    const response = await call(url)
    seen = context.parse(await response.json())
    if (condition(seen)) return seen
    await delay(pauseMs)
  }
  throw new Error(`a turn did not end: ${JSON.stringify(seen)}`)
}
