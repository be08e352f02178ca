import { z } from 'zod'
import { eventually } from '../test/support/eventually.ts'

const requestTimeoutMs = 120_000

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
type Context = z.infer<typeof context>

/** Gets a session until the condition holds: a turn ends a moment after its answer. */
export const waitForContext = (url: string, condition: (seen: Context) => boolean): Promise<Context> =>
  eventually(async () => {
    const seen = context.parse(await (await call(url)).json())
    if (condition(seen)) return seen
    throw new Error(`a turn did not end: ${JSON.stringify(seen)}`)
  })
