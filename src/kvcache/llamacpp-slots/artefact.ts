import { createHash } from 'node:crypto'
import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import { artefactIdFor } from '../artefact-id.ts'
import type { KvTurn } from '../kv-connector.ts'

/** One stored slot: what an artefact's `payload` says. */
export interface Artefact {
  /** Flat name in the KV folder. */
  readonly file: string
  /** Which engines may load it. */
  readonly fingerprint: string
  /** Size and SHA-256 (hex) of the file; missing in the announcement of a file that is not written yet. */
  readonly content: { readonly bytes: number; readonly sha256: string } | undefined
}

const turnDigits = 20
const engineDigits = 8
const idPattern = /^[\w-]{22}[0-9a-f]{28}$/

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Names the artefact of a turn: 132 bits of the session's key, 80 of a hash over the turn, 32 of the engine's. */
export const artefactIdOf = (turn: KvTurn, fingerprint: string): string => {
  const digest = digestOf(JSON.stringify([turn.tenant, turn.model, fingerprint, turn.session, turn.turnId]))
  return artefactIdFor(turn.session, digest.slice(0, turnDigits) + engineMarkOf(fingerprint))
}

const engineMarkOf = (fingerprint: string): string => digestOf(fingerprint).slice(0, engineDigits)

/** Whether an artefact was certainly stored by none of these engines. */
export const isOfOtherEngine = (artefactId: string, fingerprints: readonly string[]): boolean =>
  idPattern.test(artefactId) && !fingerprints.some((fingerprint) => artefactId.endsWith(engineMarkOf(fingerprint)))

export const fileOf = (artefactId: string): string => `ctx-${artefactId}.kv`

/** Where an engine writes, until the file has been found whole and gets its name. */
export const partOf = (file: string): string => `${file}.part`

const filePattern = /^ctx-([\w-]{32,64})\.kv$/

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
