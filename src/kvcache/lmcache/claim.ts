import * as z from 'zod'
import { lifeOf } from '../cache-salts.ts'
import type { KvTurn, StartingTurn } from '../kv-connector.ts'
import type { Parts } from './parts.ts'

const schema = z.object({
  fingerprint: z.string(),
  /** The session store. */
  store: z.string(),
  modelRoot: z.string(),
  blockTokens: z.int().positive(),
  hasEvents: z.boolean(),
  /** The session's life; empty where the salt is the tenant's. */
  life: z.string(),
  /** What the turn began with: as many chunks, of so many tokens; a chunk's hash depends on all chunks before it. */
  base: z.object({ chunks: z.int().min(0), lastChunk: z.string(), tokens: z.int().min(0) }).optional(),
})

/** What a turn carries to its end. The salt is not in it: {@link saltOf} finds it again. */
export type Claim = z.infer<typeof schema>

/** Undefined for what is no claim of this version. */
export const parseClaim = (claim: unknown): Claim | undefined => schema.safeParse(claim).data

/** Without events chunks have no names, and can only be deleted with everything else of their salt, which then must be the session's own. */
const isPerSession = ({ isolation }: Pick<Parts, 'isolation'>, { hasEvents }: Pick<Claim, 'hasEvents'>): boolean =>
  isolation === 'session' || !hasEvents

/** The session's life as its salt needs it. */
export const lifeFor = (
  parts: Pick<Parts, 'isolation'>,
  turn: Pick<StartingTurn, 'restarted' | 'createdAtMs'>,
  known: { readonly hasEvents: boolean; readonly storedLife: string | undefined },
): string => (isPerSession(parts, known) ? lifeOf(turn, known.storedLife) : '')

/** The salt of a turn, at its start and at its end. */
export const saltOf = (
  parts: Pick<Parts, 'isolation' | 'salts'>,
  { tenant, model, session: key }: Pick<KvTurn, 'tenant' | 'model' | 'session'>,
  { fingerprint, store, hasEvents, life }: Pick<Claim, 'fingerprint' | 'store' | 'hasEvents' | 'life'>,
): string => {
  const session = isPerSession(parts, { hasEvents }) ? { key, life } : undefined
  return parts.salts.of({ tenant, session, model, fingerprint: `${fingerprint} ${store}` })
}
