import type { SessionKey, SessionRecord, StoredKv, TenantKey } from '../session-record.ts'

/**
 * A session in Redis is one string of 17 lines, small to keep, to send and to read. Its numbers are decimal, its free texts are escaped as
 * in JSON, and a line without content is empty:
 *
 * 1. state and version of this layout: `c1` creating, `a1` active, `x1` expired, `d1` deleted
 * 2. what the key has beyond its first 22 characters
 * 3. the first 22 characters of the tenant's key
 * 4. created at, 5. expires at (milliseconds), 6. TTL (seconds)
 * 7. completed turns, 8. prompt tokens, 9. output tokens, 10. cached tokens
 * 11. sealed id, 12. model, 13. pod
 * 14. artefact of the stored KV, 15. why there is none
 * 16. retry digest, while creating
 * 17. leases: `<turn id>=<end in milliseconds>`, separated by blanks
 */
type SessionLines = readonly string[]

const lineCount = 17

/** A script answered with something that no session can be read from: the scripts check every text, so this is a mistake in one of them. */
const unreadable = (what: string): Error => new Error(`A session script answered without ${what}`)

const lineOf = (lines: SessionLines, number: number): string => lines[number - 1] ?? ''

const numberOf = (lines: SessionLines, number: number): number => {
  const line = lineOf(lines, number)
  if (!/^\d{1,15}$/.test(line)) throw unreadable(`a number in line ${number}`)
  return Number(line)
}

/** A free text as one line. */
export const toLine = (text: string): string => JSON.stringify(text).slice(1, -1)

const textOf = (lines: SessionLines, number: number): string => {
  const line = lineOf(lines, number)
  return line.includes('\\') ? String(JSON.parse(`"${line}"`)) : line
}

const optionalTextOf = (lines: SessionLines, number: number): string | undefined =>
  lineOf(lines, number) === '' ? undefined : textOf(lines, number)

/**
 * An id as it stands in keys and lists.
 *
 * @throws Error when it is empty or has white space, which no id of the gateway has.
 */
export const toWord = (id: string): string => {
  if (!/^\S+$/.test(id)) throw new Error('An id is empty or contains white space')
  return id
}

/** An artefact as its own key describes it. Its numbers are 0 until it is committed. */
export interface ArtefactValue extends Omit<StoredKv, 'artefactId'> {
  readonly session: SessionKey
}

/** Undefined: there is no such key, or nothing that can be read. */
export const readArtefact = (value: unknown): ArtefactValue | undefined => {
  const parts = typeof value === 'string' ? /^([^\n]*)\n(\d{1,15})\n(\d{1,15})\n(\d{1,15})\n/.exec(value) : null
  if (parts === null) return undefined
  const [head, session = '', turn, tokens, bytes] = parts
  return {
    session: session as SessionKey,
    turn: Number(turn),
    tokens: Number(tokens),
    bytes: Number(bytes),
    payload: parts.input.slice(head.length),
  }
}

const readKv = (artefactId: string, value: unknown): StoredKv | undefined => {
  const artefact = readArtefact(value)
  if (artefactId === '' || artefact === undefined) return undefined
  const { payload, tokens, bytes, turn } = artefact
  return { artefactId, payload, tokens, bytes, turn }
}

/** What the scripts call a snapshot: the session's key, its text, and the value of its artefact's key. */
const readSnapshot = (snapshot: unknown): readonly [key: SessionKey, lines: SessionLines, artefact: unknown] => {
  if (!Array.isArray(snapshot) || typeof snapshot[0] !== 'string') throw unreadable('a snapshot')
  const lines = String(snapshot[1]).split('\n')
  if (lines.length !== lineCount) throw unreadable('a whole text')
  return [snapshot[0] as SessionKey, lines, snapshot[2]]
}

/**
 * A session as its tenant sees it: the text has only part of the tenant's key.
 *
 * @throws Error when the snapshot is not that of a live session.
 */
export const readRecord = (snapshot: unknown, tenant: TenantKey): SessionRecord => {
  const [key, lines, artefact] = readSnapshot(snapshot)
  return {
    key,
    tenant,
    sealedId: textOf(lines, 11),
    model: textOf(lines, 12),
    createdAtMs: numberOf(lines, 4),
    expiresAtMs: numberOf(lines, 5),
    ttlSeconds: numberOf(lines, 6),
    turns: numberOf(lines, 7),
    tokens: { prompt: numberOf(lines, 8), output: numberOf(lines, 9), cached: numberOf(lines, 10) },
    pod: optionalTextOf(lines, 13),
    kv: readKv(lineOf(lines, 14), artefact),
    kvNote: optionalTextOf(lines, 15),
  }
}

/** What a tombstone of an expired session still tells. */
export const readTombstone = (snapshot: unknown): { readonly ttlSeconds: number; readonly model: string } => {
  const [, lines] = readSnapshot(snapshot)
  return { ttlSeconds: numberOf(lines, 6), model: textOf(lines, 12) }
}
