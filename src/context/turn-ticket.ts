import { z } from 'zod'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { TurnExpiry } from '../sessions/session-store.ts'

/**
 * Everything that ending a turn needs. It travels in Envoy's request metadata and comes back with the access log, so that any gateway process
 * can end a turn that another one began. It holds no raw id, credential or prompt.
 */
export interface TurnTicket {
  readonly turnId: string
  readonly pod: string
  /** Undefined: a turn without a session (unknown id, store down), which is only counted. */
  readonly session:
    | {
        readonly key: SessionKey
        readonly tenant: TenantKey
        readonly model: string
        readonly expiry: TurnExpiry
        /** The connector's claim; undefined when nothing was attached. */
        readonly claim: string | undefined
      }
    | undefined
}

const expirySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('keep') }),
  z.object({ kind: z.literal('slide') }),
  z.object({ kind: z.literal('set'), ttlSeconds: z.int().positive(), expiresAtMs: z.number() }),
])

const ticketSchema = z.object({
  v: z.literal(1),
  turnId: z.string(),
  pod: z.string(),
  session: z
    .object({
      key: z.string(),
      tenant: z.string(),
      model: z.string(),
      expiry: expirySchema,
      claim: z.string().optional(),
    })
    .optional(),
})

export const encodeTicket = (ticket: TurnTicket): string => JSON.stringify({ v: 1, ...ticket })

/** Undefined for what is not a ticket of this version. */
export const decodeTicket = (text: string): TurnTicket | undefined => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  const parsed = ticketSchema.safeParse(json)
  if (!parsed.success) return undefined
  const { turnId, pod, session } = parsed.data
  return {
    turnId,
    pod,
    session:
      session === undefined
        ? undefined
        : {
            key: session.key as SessionKey,
            tenant: session.tenant as TenantKey,
            model: session.model,
            expiry: session.expiry,
            claim: session.claim,
          },
  }
}
