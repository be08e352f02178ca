import * as z from 'zod'
import { sign, signedText } from '../crypto/mac.ts'
import { deriveKey } from '../crypto/seal.ts'
import { readJson } from '../json/read-json.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { RequestTrace } from './request-trace.ts'

/**
 * Everything that the end of a turn needs. It travels in Envoy's request metadata and returns with the access log, so
 * that any gateway process can end a turn that another began. It holds no raw session id, credential or prompt.
 */
export interface TurnTicket extends RequestTrace {
  readonly turnId: string
  /** Name of the pool. */
  readonly pool: string
  /** `host:port` of the chosen pod. */
  readonly pod: string
  /** `x-context-cache`, and how long the pod was prepared, milliseconds: for the log and metrics. Default: unknown. */
  readonly cacheStatus?: string | undefined
  readonly preparedMs?: number | undefined
  /** How long the turn waited for room and resources, milliseconds. */
  readonly waitedMs?: number | undefined
  /** Of a turn without a session; undefined: unknown. */
  readonly model?: string | undefined
  /** Undefined for a turn without a session (unknown id, store unavailable), which is only counted. */
  readonly session?: SessionTicket | undefined
}

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

const envelope = z.object({
  version: z.literal(version),
  ticket: z.object({
    turnId: text,
    pool: text,
    pod: text,
    cacheStatus: text.optional(),
    preparedMs: z.number().optional(),
    waitedMs: z.number().optional(),
    traceId: text.optional(),
    requestId: text.optional(),
    model: text.optional(),
    session: sessionSchema.optional(),
  }),
})

/** Tickets as text. Whoever reaches the gRPC port can report any text as the end of a turn. */
export interface Tickets {
  /** JSON behind a MAC. */
  encode(ticket: TurnTicket): string
  /** Undefined: no gateway of this deployment and version made the text. */
  decode(text: string): TurnTicket | undefined
}

/** `secret` is the tenant secret, shared by all gateways of a deployment. */
export const createTickets = (secret: string): Tickets => {
  const key = deriveKey(secret, 'context-cache turn ticket')
  return {
    encode: (ticket) => sign(key, JSON.stringify({ version, ticket })),
    decode: (text) => envelope.safeParse(readJson(signedText(key, text) ?? '')).data?.ticket,
  }
}
