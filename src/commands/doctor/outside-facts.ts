import { z } from 'zod'
import { readJson } from '../../json/read-json.ts'
import { type Answer, ask, below } from '../ask.ts'
import { readClock } from './clock-reading.ts'
import { known, type Seen, unknown } from './known.ts'

/** What a client without a credential gets. */
export interface OutsideFacts {
  /** `GET /v1/context`, which only a gateway answers. */
  readonly context: Reply
  /** `POST /v1/context` with a body of the size. */
  readonly largeBody: Reply & { readonly bytes: number }
  /** Paths where engines serve control calls. */
  readonly control: readonly (Reply & { readonly path: string })[]
}

interface Reply {
  readonly status: number
  /** `error.code` of the answer. */
  readonly code: string | undefined
}

/** Above Envoy's default of 1 MiB, below the gateway's own limit. */
const largeBytes = 2 * 1024 * 1024
const controlPaths = ['/slots', '/metrics', '/props']

const errorSchema = z.object({ error: z.object({ code: z.string().nullish() }) })

const replyOf = ({ status, text }: Answer): Reply => ({
  status,
  code: errorSchema.safeParse(readJson(text)).data?.error.code ?? undefined,
})

/** Asks without a credential and without a session; no engine computes anything. */
export const askOutside = async (url: string): Promise<Seen<OutsideFacts>> => {
  const context = await ask(below(url, '/v1/context'))
  if (typeof context === 'string') return { facts: unknown(context), clocks: [] }
  const headers = { 'content-type': 'application/json' }
  const largeBody = await ask(below(url, '/v1/context'), { method: 'POST', headers, body: ' '.repeat(largeBytes) })
  const control = await Promise.all(controlPaths.map(async (path) => ({ path, answer: await ask(below(url, path)) })))
  return {
    facts: known({
      context: replyOf(context),
      // Envoy may close the connection before it has read the body.
      largeBody: {
        bytes: largeBytes,
        ...(typeof largeBody === 'string' ? { status: 413, code: undefined } : replyOf(largeBody)),
      },
      control: control.flatMap(({ path, answer }) =>
        typeof answer === 'string' ? [] : [{ path, ...replyOf(answer) }],
      ),
    }),
    clocks: readClock('Envoy', context),
  }
}
