import type { EndedTurn } from '../context/context-cache-manager.ts'
import { readCounts } from './answer-counts.ts'
import { type ResponseFlags, readFlags } from './response-flags.ts'
import type { LogEntry } from './wire.ts'

/** What an access log entry says. */
export type ParsedEntry =
  | { readonly kind: 'turn'; readonly turn: EndedTurn }
  /** A client left before Envoy had read what was decided on its request: the entry has no ticket. */
  | { readonly kind: 'left'; readonly requestKey: string }
  /** No turn of ours. */
  | { readonly kind: 'other' }
  /** It claims to be a turn, but cannot be read. */
  | { readonly kind: 'malformed'; readonly reason: string }

/** The order in which `access_log` in envoy.yaml names the parts of an entry. */
const order = [
  'requestKey',
  'status',
  'flags',
  'upstreamAddress',
  'sentUs',
  'answeredUs',
  'stream',
  'usage',
  'timings',
  'notes',
  // Of two parts, one of which says nothing.
  'ticket',
] as const
type PartName = (typeof order)[number]

const placeOf = Object.fromEntries(order.map((name, place) => [name, place])) as Readonly<Record<PartName, number>>

/** Stands in no JSON text. A ticket may hold one, and comes last. */
const separator = '\u001f'

/** Between the notes of the filter for turns. */
const noteSeparator = '\u001e'

/** What Envoy writes for a part that there is not. */
const nothing = '-'

const maxPort = 65_535

const aheadOfTicket = `${nothing}${separator}`
const behindTicket = `${separator}${nothing}`

/** Reads how a turn ended. Total: whatever the entry holds, it returns. */
export const parseEntry = (entry: LogEntry): ParsedEntry => {
  if (entry === '') return { kind: 'other' }
  const parts = partsOf(entry)
  if (parts.length !== order.length) {
    return { kind: 'malformed', reason: `${parts.length} parts instead of ${order.length}` }
  }
  const flags = readFlags(partAt(parts, 'flags'))
  const ticket = partAt(parts, 'ticket')
  return ticket === undefined ? withoutTicket(parts, flags) : { kind: 'turn', turn: endedTurn(parts, ticket, flags) }
}

const partsOf = (entry: LogEntry): readonly string[] => {
  const parts: string[] = []
  let from = 0
  let at = entry.indexOf(separator)
  while (at >= 0 && parts.length < order.length - 1) {
    parts.push(entry.slice(from, at))
    from = at + 1
    at = entry.indexOf(separator, from)
  }
  const ticket = ticketIn(entry.slice(from))
  if (ticket !== undefined) parts.push(ticket)
  return parts
}

/** The ticket stands last if the filter for turns has it, else ahead of a part that is missing. */
const ticketIn = (parts: string): string | undefined => {
  if (parts.startsWith(aheadOfTicket)) return parts.slice(aheadOfTicket.length)
  return parts.endsWith(behindTicket) ? parts.slice(0, -behindTicket.length) : undefined
}

const withoutTicket = (parts: readonly string[], flags: ResponseFlags): ParsedEntry => {
  const requestKey = partAt(parts, 'requestKey')
  return requestKey !== undefined && flags.clientDisconnected ? { kind: 'left', requestKey } : { kind: 'other' }
}

const endedTurn = (parts: readonly string[], ticket: string, flags: ResponseFlags): EndedTurn => {
  const status = wholeNumber(partAt(parts, 'status')) ?? 0
  const sentUs = wholeNumber(partAt(parts, 'sentUs'))
  const answeredUs = wholeNumber(partAt(parts, 'answeredUs'))
  const { stream, usage, timings } = notesIn(parts)
  return {
    ticket,
    status,
    complete: status > 0 && !flags.isCut && isWholeStream(stream),
    clientDisconnected: flags.clientDisconnected,
    upstreamFailed: flags.upstreamFailed,
    // An address alone proves nothing: it is there for a connection that failed, too.
    servedBy: answeredUs === undefined ? undefined : hostAndPort(partAt(parts, 'upstreamAddress')),
    usage: readCounts(usage, timings),
    ttfbMs:
      sentUs === undefined || answeredUs === undefined || answeredUs < sentUs
        ? undefined
        : (answeredUs - sentUs) / 1000,
  }
}

interface Notes {
  readonly stream: string | undefined
  readonly usage: string | undefined
  readonly timings: string | undefined
}

/** What a filter noted on the answer: the Lua filter each by itself, the filter for turns all in one text. */
const notesIn = (parts: readonly string[]): Notes => {
  const notes = partAt(parts, 'notes')
  if (notes === undefined)
    return { stream: partAt(parts, 'stream'), usage: partAt(parts, 'usage'), timings: partAt(parts, 'timings') }
  const [stream, usage, timings] = notes.split(noteSeparator)
  return { stream: said(stream), usage: said(usage), timings: said(timings) }
}

const partAt = (parts: readonly string[], name: PartName): string | undefined => said(parts[placeOf[name]])

const said = (part: string | undefined): string | undefined => (part === nothing || part === '' ? undefined : part)

/** A streamed answer is whole when its end was seen in it, and no error event; any other answer by its framing. */
const isWholeStream = (stream: string | undefined): boolean => stream === undefined || stream === 'done'

const wholeNumber = (text: string | undefined): number | undefined => {
  const number = text === undefined ? Number.NaN : Number(text)
  return Number.isSafeInteger(number) && number >= 0 ? number : undefined
}

/** `10.0.0.1:8000`, `[fd00::1]:8000`; undefined for what is no such address, as of a Unix socket. */
const hostAndPort = (address: string | undefined): string | undefined => {
  const colon = address?.lastIndexOf(':') ?? -1
  if (address === undefined || colon < 1) return undefined
  const port = wholeNumber(address.slice(colon + 1)) ?? 0
  return port >= 1 && port <= maxPort ? address : undefined
}
