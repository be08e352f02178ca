import * as z from 'zod'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { sign, signedText } from '../crypto/mac.ts'
import { deriveKey } from '../crypto/seal.ts'
import { readJson } from '../json/read-json.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'

const version = 4
const text = z.string().min(1)

const sessionSchema = z.object({
  key: text.transform((key) => key as SessionKey),
  tenant: text.transform((tenant) => tenant as TenantKey),
  model: text,
  expiry: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('keep') }),
    z.object({ kind: z.literal('slide') }),
    z.object({ kind: z.literal('set'), ttlSeconds: z.int().min(1), expiresAtMs: z.number() }),
  ]),
  /** The connector's claim; undefined when nothing was attached. */
  claim: z.string().optional(),
  /** What the chosen pod holds of the session; undefined: nothing, as far as is known. */
  promised: z.object({ tokens: z.number(), source: z.enum(['kept', 'loaded']) }).optional(),
})

/** Session of a ticket. */
export type SessionTicket = Readonly<z.infer<typeof sessionSchema>>

const ticketSchema = z.object({
  turnId: text,
  /** Name of the pool. */
  pool: text,
  /** `host:port` of the chosen pod. */
  pod: text,
  /** Kind of the client's name that chose the session. Default: its id did, or there is none. */
  namedBy: text.optional(),
  /** `x-context-cache`. Default: none was sent. */
  cacheStatus: text.optional(),
  /** Time to find or load the session's KV, milliseconds. Default: not looked for. */
  preparedMs: z.number().optional(),
  /** Time that the turn waited for room and resources, milliseconds. Default: it did not. */
  waitedMs: z.number().optional(),
  traceId: text.optional(),
  /** The gateway's span of the request, where its trace is sampled. */
  spanId: text.optional(),
  requestId: text.optional(),
  /** Of a turn without a session; undefined: unknown. */
  model: text.optional(),
  /** Undefined for a turn without a session (unknown id, store unavailable), which is only counted. */
  session: sessionSchema.optional(),
})

/**
 * Everything that the end of a turn needs. It travels in Envoy's request metadata and returns with the access log, so
 * that any gateway process can end a turn that another began. It holds no raw session id, credential or prompt.
 */
export type TurnTicket = Readonly<z.infer<typeof ticketSchema>>

const envelope = z.object({ version: z.literal(version), ticket: ticketSchema })

/** Tickets as text. Whoever reaches the gRPC port can report any text as the end of a turn. */
export interface Tickets {
  /** JSON behind a MAC. */
  encode(ticket: TurnTicket): string
  /** Undefined: no gateway of this deployment and version made the text. */
  decode(text: string): TurnTicket | undefined
}

/**
 * `secret` is the tenant secret, shared by all gateways of a deployment. A ticket is signed with the secret that its
 * session's tenant is of, so that it tells which one that is.
 */
export const createTickets = (secret: string, former?: FormerSecret): Tickets => {
  const keyOf = (each: string) => deriveKey(each, 'context-cache turn ticket')
  const key = keyOf(secret)
  const formerKey = former && keyOf(former.secret)
  const read = (signed: string | undefined): TurnTicket | undefined =>
    envelope.safeParse(readJson(signed ?? '')).data?.ticket
  return {
    encode: (ticket) => {
      const isFormer = former?.has(ticket.session?.tenant ?? '') === true
      return sign((isFormer ? formerKey : undefined) ?? key, JSON.stringify({ version, ticket }))
    },
    decode: (given) => {
      const signed = signedText(key, given)
      if (signed !== undefined || formerKey === undefined) return read(signed)
      const ticket = read(signedText(formerKey, given))
      if (ticket?.session !== undefined) former?.add(ticket.session.tenant)
      return ticket
    },
  }
}
