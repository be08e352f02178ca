import * as z from 'zod'
import type { KvTurn } from '../kv-connector.ts'
import type { Parts } from './parts.ts'

const schema = z.object({
  fingerprint: z.string(),
  /** The session store. */
  store: z.string(),
  modelRoot: z.string(),
  blockTokens: z.int().positive(),
  beganAtMs: z.number().default(0), // Missing in claims of an earlier version.
  /** The session's life; empty where the salt is the tenant's. */
  life: z.string(),
  /** What the turn began with: as many chunks. A chunk's hash depends on all chunks before it. */
  base: z.object({ chunks: z.int().min(0), lastChunk: z.string() }).optional(),
})

/** What a turn carries to its end. The salt is not in it: {@link saltOf} finds it again. */
export type Claim = z.infer<typeof schema>

/** Undefined for what is no claim of this version. */
export const parseClaim = (claim: unknown): Claim | undefined => schema.safeParse(claim).data

/** The salt of a turn, at its start and at its end. */
export const saltOf = (
  { isolation, salts }: Pick<Parts, 'isolation' | 'salts'>,
  { tenant, model, session: key }: Pick<KvTurn, 'tenant' | 'model' | 'session'>,
  { fingerprint, store, life }: Pick<Claim, 'fingerprint' | 'store' | 'life'>,
): string => {
  const session = isolation === 'session' ? { key, life } : undefined
  return salts.of({ tenant, session, model, fingerprint: `${fingerprint} ${store}` })
}
