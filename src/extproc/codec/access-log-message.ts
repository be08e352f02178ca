import type { WireCommon, WireDuration, WireEntry, WireSocketAddress } from '../../accesslog/wire.ts'
import { readMap, readMetadata } from './metadata.ts'
import { WireReader } from './wire-reader.ts'

type Mutable<Message> = { -readonly [Field in keyof Message]: Message[Field] }

const httpLogsTag = 2 * 8 + 2
const entryTag = 1 * 8 + 2

/** Envoy's response flags by field number; the ones left out are not looked at. */
const flagNames: readonly (string | undefined)[] = Object.freeze([
  undefined,
  undefined,
  'no_healthy_upstream',
  'upstream_request_timeout',
  'local_reset',
  'upstream_remote_reset',
  'upstream_connection_failure',
  'upstream_connection_termination',
  'upstream_overflow',
  'no_route_found',
  undefined,
  'fault_injected',
  undefined,
  undefined,
  undefined,
  'downstream_connection_termination',
  'upstream_retry_limit_exceeded',
  'stream_idle_timeout',
  undefined,
  'downstream_protocol_error',
  'upstream_max_stream_duration_reached',
  undefined,
  undefined,
  'duration_timeout',
  'upstream_protocol_error',
  'no_cluster_found',
  'overload_manager',
  'dns_resolution_failure',
  'downstream_remote_reset',
])

/**
 * The entries of a StreamAccessLogsMessage, with what of them is read; lists and structs within metadata are named, but
 * not decoded. Throws a CodecError on what is no such message.
 */
export const decodeAccessLogMessage = (bytes: Buffer): readonly WireEntry[] => {
  const reader = new WireReader(bytes)
  const entries: WireEntry[] = []
  while (reader.more) {
    const tag = reader.tag()
    if (tag === httpLogsTag) readEntries(reader, entries)
    else reader.skip(tag)
  }
  return entries
}

const readEntries = (reader: WireReader, entries: WireEntry[]): void => {
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === entryTag) entries.push(readEntry(reader))
    else reader.skip(tag)
  }
  reader.leave(outer)
}

const readEntry = (reader: WireReader): WireEntry => {
  const entry: Mutable<WireEntry> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8 + 2) entry.common_properties = readCommon(reader)
    else if (tag === 3 * 8 + 2) entry.request = readRequest(reader)
    else if (tag === 4 * 8 + 2) entry.response = readResponse(reader)
    else reader.skip(tag)
  }
  reader.leave(outer)
  return entry
}

const readRequest = (reader: WireReader): NonNullable<WireEntry['request']> => {
  const headers = readMap(reader, 13 * 8 + 2, readText, '')
  return headers === undefined ? {} : { request_headers: headers }
}

const readText = (reader: WireReader): string => reader.text()

const readResponse = (reader: WireReader): NonNullable<WireEntry['response']> => {
  let response: NonNullable<WireEntry['response']> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8 + 2) response = { response_code: readUint32Value(reader) }
    else reader.skip(tag)
  }
  reader.leave(outer)
  return response
}

const readUint32Value = (reader: WireReader): { readonly value?: number } => {
  let wrapped: { readonly value?: number } = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8) wrapped = { value: reader.uint32() }
    else reader.skip(tag)
  }
  reader.leave(outer)
  return wrapped
}

const readCommon = (reader: WireReader): WireCommon => {
  const common: Mutable<WireCommon> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    switch (tag) {
      case 8 * 8 + 2:
        common.time_to_last_upstream_tx_byte = readDuration(reader)
        break
      case 9 * 8 + 2:
        common.time_to_first_upstream_rx_byte = readDuration(reader)
        break
      case 13 * 8 + 2:
        common.upstream_remote_address = readAddress(reader)
        break
      case 16 * 8 + 2:
        common.response_flags = readFlags(reader)
        break
      case 17 * 8 + 2:
        common.metadata = readMetadata(reader)
        break
      case 33 * 8:
        common.access_log_type = reader.int32()
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  return common
}

const readDuration = (reader: WireReader): WireDuration => {
  const duration: Mutable<WireDuration> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8) duration.seconds = reader.int64()
    else if (tag === 2 * 8) duration.nanos = reader.int32()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return duration
}

const readAddress = (reader: WireReader): NonNullable<WireCommon['upstream_remote_address']> => {
  let address: NonNullable<WireCommon['upstream_remote_address']> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8 + 2) address = { socket_address: readSocketAddress(reader) }
    else reader.skip(tag)
  }
  reader.leave(outer)
  return address
}

const readSocketAddress = (reader: WireReader): WireSocketAddress => {
  const address: Mutable<WireSocketAddress> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 2 * 8 + 2) address.address = reader.text()
    else if (tag === 3 * 8) address.port_value = reader.uint32()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return address
}

const readFlags = (reader: WireReader): Readonly<Record<string, boolean>> => {
  const flags: Record<string, boolean> = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    const name = (tag & 7) === 0 ? flagNames[tag >>> 3] : undefined
    if (name === undefined) reader.skip(tag)
    else flags[name] = reader.bool()
  }
  reader.leave(outer)
  return flags
}
