import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import type { ContentKey } from '../vault/token-vault.ts'

export interface BaseArtefact {
  readonly artefactId: string
  readonly tokens: number
  /** Its payload and size, where a later turn has nothing else to tell what it stored. */
  readonly stored?: { readonly payload: string; readonly bytes: number } | undefined
}

/** What a turn carries to its end. It holds the key of the session's content, so it belongs in no log. */
export interface Claim {
  readonly salt: string
  readonly life: string
  /** The salt is the session's alone. */
  readonly isOwnSalt: boolean
  readonly modelRoot: string
  readonly blockTokens: number
  readonly hasEvents: boolean
  readonly contentKey: ContentKey
  /** The artefact that the turn began with. */
  readonly base: BaseArtefact | undefined
  /** Whether the turn's request is kept as token ids, under the turn's name. */
  readonly isCreate: boolean
}

const schema = z.object({
  v: z.literal(1),
  salt: z.string(),
  life: z.string(),
  isOwnSalt: z.boolean(),
  modelRoot: z.string(),
  blockTokens: z.int().positive(),
  hasEvents: z.boolean(),
  contentKey: z.string(),
  base: z
    .object({
      artefactId: z.string(),
      tokens: z.int().min(0),
      stored: z.object({ payload: z.string(), bytes: z.number().min(0) }).optional(),
    })
    .optional(),
  isCreate: z.boolean(),
})

export const encodeClaim = (claim: Claim): string => JSON.stringify({ v: 1, ...claim })

/** Undefined for what is no claim of this version, and for a turn that took nothing. */
export const parseClaim = (text: string): Claim | undefined => {
  const parsed = schema.safeParse(readJson(text))
  if (!parsed.success) return undefined
  const { v: _version, contentKey, ...claim } = parsed.data
  return { ...claim, base: claim.base, contentKey: contentKey as ContentKey }
}
