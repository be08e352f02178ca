import { isIPv6 } from 'node:net'
import { type EndedTurn, requestKeyHeader, type TurnUsage } from '../context/context-service.ts'
import { isCut, isUpstreamFailure, leftByClient } from './response-flags.ts'
import type { WireCommon, WireDuration, WireEntry, WireSocketAddress, WireStruct, WireValue } from './wire.ts'

/** What an access log entry says. */
export type ParsedEntry =
  | { readonly kind: 'turn'; readonly turn: EndedTurn }
  /** A client left before Envoy had read what was decided on its request: the entry has no ticket. */
  | { readonly kind: 'left'; readonly requestKey: string }
  /** No turn of ours, or not its end. */
  | { readonly kind: 'other' }
  /** It claims to be a turn, but cannot be read. */
  | { readonly kind: 'malformed'; readonly reason: string }

/** AccessLogType: the entry is written at the end of the request, or its Envoy does not tell. */
const endTypes: ReadonlySet<number> = new Set([0, 6])

const maxPort = 65_535

/** Reads how a turn ended. Total: whatever the entry holds, it returns. */
export const parseEntry = (entry: WireEntry): ParsedEntry => {
  const common = entry.common_properties ?? {}
  const turn = namespace(common, 'ctx')['turn']
  if (!endTypes.has(common.access_log_type ?? 0)) return { kind: 'other' }
  if (turn === undefined) return withoutTicket(entry, common)
  const ticket = turn.stringValue
  if (ticket === undefined || ticket === '') return { kind: 'malformed', reason: 'ctx.turn is no text' }
  const status = entry.response?.response_code?.value ?? 0
  const flags = common.response_flags ?? {}
  return {
    kind: 'turn',
    turn: {
      ticket,
      status,
      complete: status > 0 && !isCut(flags) && isWholeStream(namespace(common, 'stream')),
      clientLeft: leftByClient(flags),
      upstreamFailed: isUpstreamFailure(flags),
      servedBy: servedBy(common),
      usage: toUsage(namespace(common, 'usage')) ?? fromTimings(namespace(common, 'timings')),
      firstByteMs: firstByteMs(common),
    },
  }
}

const withoutTicket = (entry: WireEntry, common: WireCommon): ParsedEntry => {
  const headers = entry.request?.request_headers ?? {}
  const requestKey = Object.hasOwn(headers, requestKeyHeader) ? (headers[requestKeyHeader] ?? '') : ''
  return requestKey !== '' && leftByClient(common.response_flags ?? {})
    ? { kind: 'left', requestKey }
    : { kind: 'other' }
}

const none: Readonly<Record<string, WireValue>> = Object.freeze({})

const namespace = (common: WireCommon, name: string): Readonly<Record<string, WireValue>> => {
  const all: Readonly<Record<string, WireStruct>> = common.metadata?.filter_metadata ?? {}
  return Object.hasOwn(all, name) ? (all[name]?.fields ?? none) : none
}

/** A streamed answer is whole when its end was seen in it, and no error event; any other answer by its framing. */
const isWholeStream = (notes: Readonly<Record<string, WireValue>>): boolean =>
  !isSet(notes['sse']) || (isSet(notes['done']) && !isSet(notes['failed']))

/** The Lua filter writes flags as booleans, numbers or "1". */
const isSet = (value: WireValue | undefined): boolean =>
  value?.boolValue === true || value?.stringValue === '1' || value?.stringValue === 'true' || value?.numberValue === 1

/** An address alone proves nothing: it is there for a connection that failed, too. */
const servedBy = (common: WireCommon): string | undefined =>
  common.time_to_first_upstream_rx_byte === undefined
    ? undefined
    : hostAndPort(common.upstream_remote_address?.socket_address)

const hostAndPort = (address: WireSocketAddress | undefined): string | undefined => {
  const host = address?.address ?? ''
  const port = address?.port_value ?? 0
  if (host === '' || port < 1 || port > maxPort) return undefined
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}

const toUsage = (notes: Readonly<Record<string, WireValue>>): TurnUsage | undefined => {
  const promptTokens = tokens(notes['prompt_tokens'])
  const outputTokens = tokens(notes['output_tokens'])
  const cachedTokens = tokens(notes['cached_tokens'])
  if (promptTokens === undefined && outputTokens === undefined && cachedTokens === undefined) return undefined
  return { promptTokens: promptTokens ?? 0, outputTokens: outputTokens ?? 0, cachedTokens: cachedTokens ?? 0 }
}

/** llama-server counts at the end of every stream, also where no usage was asked for; its prompt count leaves the cached tokens out. */
const fromTimings = (notes: Readonly<Record<string, WireValue>>): TurnUsage | undefined => {
  const computedTokens = tokens(notes['prompt_n'])
  const outputTokens = tokens(notes['predicted_n'])
  if (computedTokens === undefined || outputTokens === undefined) return undefined
  const cachedTokens = tokens(notes['cache_n']) ?? 0
  return { promptTokens: computedTokens + cachedTokens, outputTokens, cachedTokens }
}

const tokens = (value: WireValue | undefined): number | undefined => {
  const count = value?.numberValue
  return count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

const firstByteMs = (common: WireCommon): number | undefined => {
  const sent = toMs(common.time_to_last_upstream_tx_byte)
  const answered = toMs(common.time_to_first_upstream_rx_byte)
  return sent === undefined || answered === undefined || answered < sent ? undefined : answered - sent
}

const toMs = (duration: WireDuration | undefined): number | undefined =>
  duration === undefined ? undefined : (duration.seconds ?? 0) * 1000 + (duration.nanos ?? 0) / 1e6
