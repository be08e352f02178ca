import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { KvTurn } from '../kv-connector.ts'
import { readJson } from '../read-json.ts'

/** One stored slot: what an artefact's `payload` says. */
export interface Artefact {
  /** Flat name in the KV folder. */
  readonly file: string
  /** Which engines may load it. */
  readonly fingerprint: string
  /** Size and SHA-256 (hex) of the file; missing in the announcement of a file that is not written yet. */
  readonly content: { readonly bytes: number; readonly sha256: string } | undefined
}

const idLength = 40

/**
 * Name of the artefact that the end of this turn leaves: SHA-256, hex, shortened to 160 bits. It differs for every tenant, model, engine,
 * session and turn, so no file is ever written twice.
 */
export const artefactIdOf = (turn: KvTurn, fingerprint: string): string =>
  createHash('sha256')
    .update(JSON.stringify([turn.tenant, turn.model, fingerprint, turn.session, turn.turnId]))
    .digest('hex')
    .slice(0, idLength)

export const fileOf = (artefactId: string): string => `ctx-${artefactId}.kv`

/** Where an engine writes, until the file has been found whole and gets its name. */
export const partOf = (file: string): string => `${file}.part`

const filePattern = /^ctx-([0-9a-f]{32,64})\.kv$/

/** The artefact's id, if this is the name of an artefact's file. */
export const artefactIdIn = (file: string): string | undefined => filePattern.exec(file)?.[1]

/** Whether a name is one that this connector or an engine writing for it may have left behind half done. */
export const isUnfinished = (file: string): boolean => file.startsWith('ctx-') && artefactIdIn(file) === undefined

const payloadSchema = z.object({
  file: z.string().regex(filePattern),
  fingerprint: z.string(),
  bytes: z.number().int().nonnegative().optional(),
  sha256: z.string().optional(),
})

export const formatPayload = (artefact: Artefact): string =>
  JSON.stringify({ file: artefact.file, fingerprint: artefact.fingerprint, ...artefact.content })

/** Undefined: not a payload of this connector. */
export const parsePayload = (payload: string): Artefact | undefined => {
  const parsed = payloadSchema.safeParse(readJson(payload))
  if (!parsed.success) return undefined
  const { file, fingerprint, bytes, sha256 } = parsed.data
  const content = bytes === undefined || sha256 === undefined ? undefined : { bytes, sha256 }
  return { file, fingerprint, content }
}
