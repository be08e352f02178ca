import type { EndedTurn } from '../context/context-service.ts'
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

/** Where an entry has what: the order in which `access_log` in envoy.yaml names its values. */
const place = {
  ticket: 0,
  requestKey: 1,
  status: 2,
  flags: 3,
  upstreamAddress: 4,
  sentUs: 5,
  answeredUs: 6,
  stream: 7,
  usage: 8,
  timings: 9,
} as const

const places = Object.keys(place).length

/** What Envoy writes for a value that there is not. */
const nothing = '-'

const maxPort = 65_535

/** Reads how a turn ended. Total: whatever the entry holds, it returns. */
export const parseEntry = (entry: LogEntry): ParsedEntry => {
  if (entry.length === 0) return { kind: 'other' }
  if (entry.length !== places) return { kind: 'malformed', reason: `${entry.length} values instead of ${places}` }
  const flags = readFlags(valueAt(entry, 'flags'))
  const ticket = valueAt(entry, 'ticket')
  return ticket === undefined ? withoutTicket(entry, flags) : { kind: 'turn', turn: endedTurn(entry, ticket, flags) }
}

const withoutTicket = (entry: LogEntry, flags: ResponseFlags): ParsedEntry => {
  const requestKey = valueAt(entry, 'requestKey')
  return requestKey !== undefined && flags.clientLeft ? { kind: 'left', requestKey } : { kind: 'other' }
}

const endedTurn = (entry: LogEntry, ticket: string, flags: ResponseFlags): EndedTurn => {
  const status = wholeNumber(valueAt(entry, 'status')) ?? 0
  const sentUs = wholeNumber(valueAt(entry, 'sentUs'))
  const answeredUs = wholeNumber(valueAt(entry, 'answeredUs'))
  return {
    ticket,
    status,
    complete: status > 0 && !flags.isCut && isWholeStream(valueAt(entry, 'stream')),
    clientLeft: flags.clientLeft,
    upstreamFailed: flags.upstreamFailed,
    // An address alone proves nothing: it is there for a connection that failed, too.
    servedBy: answeredUs === undefined ? undefined : hostAndPort(valueAt(entry, 'upstreamAddress')),
    usage: readCounts(valueAt(entry, 'usage'), valueAt(entry, 'timings')),
    firstByteMs:
      sentUs === undefined || answeredUs === undefined || answeredUs < sentUs
        ? undefined
        : (answeredUs - sentUs) / 1000,
  }
}

const valueAt = (entry: LogEntry, name: keyof typeof place): string | undefined => {
  const value = entry[place[name]]
  return value === nothing || value === '' ? undefined : value
}

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
