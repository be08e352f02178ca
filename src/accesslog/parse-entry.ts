import type { EndedTurn } from '../context/context-cache-manager.ts'
import { readJson } from '../json/read-json.ts'
import { readTimings, readUsage } from '../openai/usage.ts'

/** What an access log entry says. */
export type ParsedEntry =
  | { readonly kind: 'turn'; readonly turn: EndedTurn }
  /** A client disconnected before Envoy received the decision: the entry has no ticket. */
  | { readonly kind: 'disconnected'; readonly requestKey: string }
  /** Not a turn of this gateway. */
  | { readonly kind: 'other' }
  | { readonly kind: 'malformed'; readonly reason: string }

/** Fields of an entry, by their names in `access_log` of envoy.yaml. A later version may write more. */
const fieldNames = [
  'key',
  'status',
  'flags',
  'upstream',
  'sent_us',
  'answered_us',
  'stream',
  'usage',
  'timings',
] as const

/** All fields that an entry needs. */
export const entryFields: readonly string[] = [...fieldNames, 'ticket']

/** Occurs in no JSON text. The ticket may contain one, and comes last. */
const separator = '\u001f'
const ticketStart = `${separator}ticket=`

const maxPort = 65_535
/** More than a later version may write. */
const maxFields = 64

/** Parses one entry. Never throws. */
export const parseEntry = (entry: string): ParsedEntry => {
  if (entry === '') return { kind: 'other' }
  const fields = readFields(entry)
  const missing = entryFields.filter((name) => !fields.has(name))
  if (missing.length > 0) return { kind: 'malformed', reason: otherVersion(missing) }
  const [requestKey, status, flagNames, upstreamAddress, sentUs, answeredUs, stream, usage, timings] = fieldNames.map(
    (name) => fields.get(name),
  )
  const ticket = fields.get('ticket')
  const flags = readFlags(flagNames)
  if (ticket === undefined) {
    return requestKey !== undefined && flags.clientDisconnected
      ? { kind: 'disconnected', requestKey }
      : { kind: 'other' }
  }
  const sent = wholeNumber(sentUs)
  const answered = wholeNumber(answeredUs)
  const httpStatus = wholeNumber(status) ?? 0
  return {
    kind: 'turn',
    turn: {
      ticket,
      status: httpStatus,
      complete: httpStatus > 0 && !flags.isCut && isWholeStream(stream),
      isStream: stream !== undefined,
      clientDisconnected: flags.clientDisconnected,
      upstreamFailed: flags.upstreamFailed,
      // Envoy also names the address of a connection that failed.
      servedBy: answered === undefined ? undefined : hostAndPort(upstreamAddress),
      usage: readUsage(parsed(usage)) ?? readTimings(parsed(timings)),
      ttfbMs: sent === undefined || answered === undefined || answered < sent ? undefined : (answered - sent) / 1000,
    },
  }
}

const otherVersion = (missing: readonly string[]): string =>
  `no ${missing.join(', ')}: access_log of Envoy is not the one of this version's envoy.yaml`

/** The values by name: `name=value` between separators, the ticket last. */
const readFields = (entry: string): ReadonlyMap<string, string | undefined> => {
  const ticketAt = entry.indexOf(ticketStart)
  const parts = (ticketAt < 0 ? entry : entry.slice(0, ticketAt)).split(separator, maxFields)
  const fields = new Map(parts.map((part) => [part.split('=', 1)[0] ?? '', fieldOf(part.slice(part.indexOf('=') + 1))]))
  return ticketAt < 0 ? fields : fields.set('ticket', fieldOf(entry.slice(ticketAt + ticketStart.length)))
}

/** Envoy writes a dash for a value that is missing. */
const fieldOf = (text: string): string | undefined => (text === '-' || text === '' ? undefined : text)

/** A JSON text that the Lua filter took from the response. */
const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : readJson(text))

/** A streamed response is complete if its last event came and no error event did. Other responses: by framing. */
const isWholeStream = (stream: string | undefined): boolean => stream === undefined || stream === 'done'

const wholeNumber = (text: string | undefined): number | undefined => {
  const number = text !== undefined && /^\d+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(number) ? number : undefined
}

/** `10.0.0.1:8000`, `[fd00::1]:8000`; undefined for a Unix socket. A copy: a part of a text keeps the whole in memory. */
const hostAndPort = (address: string | undefined): string | undefined => {
  const colon = address?.lastIndexOf(':') ?? -1
  if (address === undefined || colon < 1) return undefined
  const port = wholeNumber(address.slice(colon + 1)) ?? 0
  return port >= 1 && port <= maxPort ? Buffer.from(address).toString() : undefined
}

/** Envoy's response flags, by their short names: the client closed or reset its side before the answer had ended. */
const clientFlags: ReadonlySet<string> = new Set(['DC', 'DR'])

/** The pod refused, reset or was unavailable. */
const upstreamFlags: ReadonlySet<string> = new Set(['UH', 'UR', 'UF', 'UC', 'UO', 'URX', 'UPE', 'DF'])

/** Envoy ended the answer for reasons of its own, such as a time limit of the route. */
const envoyFlags: ReadonlySet<string> = new Set(['UT', 'UMSDR', 'LR', 'NR', 'FI', 'SI', 'DPE', 'DT', 'NC', 'OM'])

/** Reads `%RESPONSE_FLAGS%`: short names with commas. `isCut`: the answer is not whole, for any of these reasons. */
const readFlags = (text: string | undefined) => {
  const flags = text?.split(',') ?? []
  const clientDisconnected = flags.some((flag) => clientFlags.has(flag))
  const upstreamFailed = flags.some((flag) => upstreamFlags.has(flag))
  return {
    clientDisconnected,
    upstreamFailed,
    isCut: clientDisconnected || upstreamFailed || flags.some((flag) => envoyFlags.has(flag)),
  }
}
