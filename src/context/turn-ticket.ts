import { digitsIn } from '../collections/digits-in.ts'
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

/**
 * A ticket begins with a line of numbers: its version, and how long each of the texts is that follow it without a gap: turn and pod, and where there
 * is a session key, tenant, model, expiry and claim (`-` for no claim). Every turn writes a ticket and reads one, and this takes half of what JSON
 * takes; the lengths add up to the ticket's only if it is whole.
 */
const version = '2'
const noClaim = '-'

const firstField = version.length + 1

export const encodeTicket = ({ turnId, pod, session }: TurnTicket): string => {
  if (session === undefined) return `${version} ${turnId.length} ${pod.length}\n${turnId}${pod}`
  const { key, tenant, model, claim } = session
  const expiry = encodeExpiry(session.expiry)
  const lengths = `${turnId.length} ${pod.length} ${key.length} ${tenant.length} ${model.length} ${expiry.length}`
  return `${version} ${lengths} ${claim?.length ?? noClaim}\n${turnId}${pod}${key}${tenant}${model}${expiry}${claim ?? ''}`
}

/** The turn of a ticket; of what is no ticket, the text itself. */
export const turnIdOf = (text: string): string => {
  const lineEnd = text.indexOf('\n')
  const length = digitsIn(text, firstField, fieldEnd(text, firstField, lineEnd))
  return Number.isNaN(length) ? text : text.slice(lineEnd + 1, lineEnd + 1 + length)
}

/** Undefined for what is not a ticket of this version. */
export const decodeTicket = (text: string): TurnTicket | undefined => {
  const lineEnd = text.indexOf('\n')
  if (lineEnd < 0 || !text.startsWith(`${version} `)) return undefined
  const lengths = lengthsIn(text, lineEnd)
  const texts = cut(text, lineEnd + 1, lengths)
  if (texts === undefined) return undefined
  const [turnId = '', pod = '', key, tenant, model, expiryText = '', claim] = texts
  if (lengths.length === 2) return { turnId, pod, session: undefined }
  const expiry = decodeExpiry(expiryText)
  if (lengths.length !== 7 || expiry === undefined) return undefined
  return {
    turnId,
    pod,
    session: { key: key as SessionKey, tenant: tenant as TenantKey, model: model ?? '', expiry, claim },
  }
}

/** The lengths in a ticket's first line, undefined for `-`. What is no number makes one that fits no text. */
const lengthsIn = (text: string, lineEnd: number): readonly (number | undefined)[] => {
  const lengths: (number | undefined)[] = []
  let start = firstField
  while (start <= lineEnd) {
    const end = fieldEnd(text, start, lineEnd)
    lengths.push(text.slice(start, end) === noClaim ? undefined : digitsIn(text, start, end))
    start = end + 1
  }
  return lengths
}

const fieldEnd = (text: string, start: number, lineEnd: number): number => {
  const blank = text.indexOf(' ', start)
  return blank < 0 || blank > lineEnd ? lineEnd : blank
}

/** The texts of these lengths, from `start` on to the end of the text exactly. */
const cut = (
  text: string,
  start: number,
  lengths: readonly (number | undefined)[],
): readonly (string | undefined)[] | undefined => {
  const texts: (string | undefined)[] = []
  let at = start
  for (const length of lengths) {
    if (length === undefined) {
      texts.push(undefined)
      continue
    }
    const end = at + length
    if (!(end >= at && end <= text.length)) return undefined
    texts.push(text.slice(at, end))
    at = end
  }
  return at === text.length ? texts : undefined
}

const encodeExpiry = (expiry: TurnExpiry): string => {
  switch (expiry.kind) {
    case 'keep':
      return 'k'
    case 'slide':
      return 's'
    case 'set':
      return `${expiry.ttlSeconds} ${expiry.expiresAtMs}`
  }
}

const decodeExpiry = (text: string): TurnExpiry | undefined => {
  if (text === 'k') return { kind: 'keep' }
  if (text === 's') return { kind: 'slide' }
  const [ttl, time, ...others] = text.split(' ')
  const ttlSeconds = Number(ttl)
  const expiresAtMs = Number(time)
  if (!Number.isSafeInteger(ttlSeconds) || ttlSeconds < 1) return undefined
  if (time === undefined || time === '' || !Number.isFinite(expiresAtMs) || others.length > 0) return undefined
  return { kind: 'set', ttlSeconds, expiresAtMs }
}
