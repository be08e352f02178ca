import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import { lifeOf } from '../cache-salts.ts'
import type { KvTurn } from '../kv-connector.ts'
import type { Parts } from './parts.ts'

const schema = z.object({
  v: z.literal(2),
  fingerprint: z.string(),
  modelRoot: z.string(),
  blockTokens: z.int().positive(),
  hasEvents: z.boolean(),
  /** The session's life; empty where the salt is the tenant's. */
  life: z.string(),
  /** What the turn began with: as many chunks, of so many tokens; a chunk's hash depends on all chunks before it. */
  base: z.object({ chunks: z.int().min(0), lastChunk: z.string(), tokens: z.int().min(0) }).optional(),
})

/** What a turn carries to its end. It travels through Envoy, so it holds neither the salt nor a key: {@link saltOf} finds the salt again. */
export type Claim = Omit<z.infer<typeof schema>, 'v'>

export const encodeClaim = (claim: Claim): string => JSON.stringify({ v: 2, ...claim })

/** Undefined for what is no claim of this version, and for a turn that took nothing. */
export const parseClaim = (text: string): Claim | undefined => {
  const parsed = schema.safeParse(readJson(text))
  if (!parsed.success) return undefined
  const { v: _version, ...claim } = parsed.data
  return claim
}

/** Without events chunks have no names, and can only be deleted with everything else of their salt, which then must be the session's own. */
const isPerSession = ({ isolation }: Pick<Parts, 'isolation'>, { hasEvents }: Pick<Claim, 'hasEvents'>): boolean =>
  isolation === 'session' || !hasEvents

/** The session's life as its salt needs it. */
export const lifeFor = (
  parts: Pick<Parts, 'isolation'>,
  turn: Pick<KvTurn, 'startsAnew' | 'createdAtMs'>,
  known: { readonly hasEvents: boolean; readonly storedLife: string | undefined },
): string => (isPerSession(parts, known) ? lifeOf(turn, known.storedLife) : '')

/** The salt of a turn, at its start and at its end. */
export const saltOf = (
  parts: Pick<Parts, 'isolation' | 'salts'>,
  { tenant, model, session: key }: Pick<KvTurn, 'tenant' | 'model' | 'session'>,
  { fingerprint, hasEvents, life }: Pick<Claim, 'fingerprint' | 'hasEvents' | 'life'>,
): string => {
  const session = isPerSession(parts, { hasEvents }) ? { key, life } : undefined
  return parts.salts.of({ tenant, session, model, fingerprint })
}
