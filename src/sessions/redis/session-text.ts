import type { SessionKey, SessionRecord, StoredKv, TenantKey } from '../session-record.ts'

/**
 * A session in Redis is one string of 18 lines, small to keep, to send and to read. Its numbers are decimal, its free
 * texts escaped as in JSON (so it has no control characters but its line ends), and a line without content is empty:
 *
 * 1. state and version of this layout: `c3` creating, `a3` active, `x3` expired, `d3` deleted
 * 2. what the key has beyond its first 22 characters
 * 3. the first 22 characters of the tenant's key
 * 4. created at, 5. expires at (milliseconds), 6. TTL (seconds)
 * 7. completed turns, 8. prompt tokens, 9. output tokens, 10. cached tokens
 * 11. sealed id, 12. model, 13. pod
 * 14. artefact of the stored KV, 15. its record, `<turn> <tokens> <bytes> <payload>`; empty where it has its own key
 * 16. why there is no stored KV
 * 17. digest of its idempotency key, while creating
 * 18. leases: `<turn id>=<end in milliseconds>`, separated by blanks
 */
type SessionLines = readonly string[]

const lineCount = 18

/** No session can be read from a script's reply. The scripts check every text, so this is a mistake in one of them. */
const unreadable = (what: string): Error => new Error(`A session script answered without ${what}`)

const lineOf = (lines: SessionLines, number: number): string => lines[number - 1] ?? ''

const numberOf = (lines: SessionLines, number: number): number => {
  const line = lineOf(lines, number)
  if (!/^\d{1,15}$/.test(line)) throw unreadable(`a number in line ${number}`)
  return Number(line)
}

/** A free text as one line. */
export const escapeLine = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The free text of a line. */
export const unescapeLine = (line: string): string => (line.includes('\\') ? String(JSON.parse(`"${line}"`)) : line)

const textOf = (lines: SessionLines, number: number): string => unescapeLine(lineOf(lines, number))

const optionalTextOf = (lines: SessionLines, number: number): string | undefined =>
  lineOf(lines, number) === '' ? undefined : textOf(lines, number)

/** An id as it stands in keys and lists. @throws Error when it is empty, or has white space or control characters */
export const assertId = (id: string): string => {
  if (!/^[^\s\p{Cc}]+$/u.test(id)) throw new Error('An id is empty, or contains white space or control characters')
  return id
}

/** Turn, tokens, bytes, and the payload, escaped; separated by blanks. */
const recordPattern = /^(\d{1,15}) (\d{1,15}) (\d{1,15}) ([^\n]*)$/

/** The record stands in the text, or in a key of the artefact's own. */
const readKv = (lines: SessionLines, ownRecord: string): StoredKv | undefined => {
  const [, turn, tokens, bytes, payload] = recordPattern.exec(lineOf(lines, 15) || ownRecord) ?? []
  if (lineOf(lines, 14) === '' || payload === undefined) return undefined
  return {
    artefactId: lineOf(lines, 14),
    payload: unescapeLine(payload),
    tokens: Number(tokens),
    bytes: Number(bytes),
    turn: Number(turn),
  }
}

const linesOf = (text: unknown): SessionLines => {
  const lines = typeof text === 'string' ? text.split('\n') : []
  if (lines.length !== lineCount) throw unreadable('a whole text')
  return lines
}

/**
 * The session of a snapshot in a script's reply: a list of its key, its text, and the record in its artefact's key.
 * The text has only part of the tenant's key.
 * @throws Error when the text is not that of a live session.
 */
export const toRecord = (snapshot: unknown, tenant: TenantKey): SessionRecord => {
  if (!Array.isArray(snapshot) || typeof snapshot[0] !== 'string') throw unreadable('a snapshot')
  const [key, text, ownRecord] = snapshot
  const lines = linesOf(text)
  return {
    key: key as SessionKey,
    tenant,
    createdAtMs: numberOf(lines, 4),
    expiresAtMs: numberOf(lines, 5),
    ttlSeconds: numberOf(lines, 6),
    turns: numberOf(lines, 7),
    tokens: { prompt: numberOf(lines, 8), output: numberOf(lines, 9), cached: numberOf(lines, 10) },
    sealedId: textOf(lines, 11),
    model: textOf(lines, 12),
    pod: optionalTextOf(lines, 13),
    kv: readKv(lines, typeof ownRecord === 'string' ? ownRecord : ''),
    kvStatus: optionalTextOf(lines, 16),
  }
}

/** The tenant of a snapshot, as far as its text has it: scripts take it for the whole key. */
export const tenantIn = (snapshot: unknown): TenantKey =>
  lineOf(linesOf(Array.isArray(snapshot) ? snapshot[1] : undefined), 3) as TenantKey

/** What the tombstone of an expired session keeps. */
export const readTombstone = (snapshot: unknown): { readonly ttlSeconds: number; readonly model: string } => {
  const lines = linesOf(Array.isArray(snapshot) ? snapshot[1] : undefined)
  return { ttlSeconds: numberOf(lines, 6), model: textOf(lines, 12) }
}
