// This worker's gRPC streams to the gateways. Every turn is one message on one of a few long streams: a stream for each request costs Envoy as much
// as the request itself. Envoy chooses a gateway for each stream, so several are used in turn, and each is replaced now and then, for gateways that
// come later to get their share.

import {
  noHeaders,
  noHeadersBytes,
  proxy_grpc_cancel,
  proxy_grpc_close,
  proxy_grpc_send,
  proxy_grpc_stream,
  proxy_set_effective_context,
} from './env'
import { newestRoot } from './roots'
import { result, writeText } from './scratch'

const used: u32 = 4
/** Those in use come first; behind them those that are no longer asked, but still owe verdicts. */
const kept: u32 = 64
/** Token, the tick when it was opened, verdicts owed, and the context that opened it. */
const recordBytes: u32 = 16
const records: usize = memory.data(1024)
/** In ticks. */
const life: u32 = 300

const longestCluster: i32 = 120
const service: usize = memory.data(128)
const name: usize = memory.data(32)
const method: usize = memory.data(16)
let serviceLength: i32 = 0
let nameLength: i32 = 0
let methodLength: i32 = 0
let next: u32 = 0

/** Which cluster the gateways are, as a text of `length` bytes; false when there is none or it is too long. */
export function configure(cluster: usize, length: i32): bool {
  if (length < 1 || length > longestCluster) return false
  // GrpcService { envoy_grpc { cluster_name } }, lengths below 128 being one byte.
  store<u8>(service, 0x0a)
  store<u8>(service, <u8>(length + 2), 1)
  store<u8>(service, 0x0a, 2)
  store<u8>(service, <u8>length, 3)
  memory.copy(service + 4, cluster, length)
  serviceLength = length + 4
  nameLength = writeText('contextcache.v1.Turns', name)
  methodLength = writeText('Decide', method)
  return true
}

/** The token of the stream that is to be asked next; 0 when there is none. */
export function choose(tick: u32): u32 {
  next = (next + 1) % used
  const record = recordAt(next)
  const isThere = load<u32>(record) !== 0 && proxy_set_effective_context(load<u32>(record, 12)) === 0
  return isThere ? load<u32>(record) : open(record, tick)
}

/** Sends a message; false when that could not be done. */
export function send(token: u32, message: usize, length: i32): bool {
  const record = find(token)
  if (record === 0 || proxy_set_effective_context(load<u32>(record, 12)) !== 0) return false
  return proxy_grpc_send(token, message, length, 0) === 0
}

/** A verdict is owed on a stream, or (`by` -1) no more. */
export function owe(token: u32, by: i32): void {
  const record = find(token)
  if (record === 0) return
  const owed = load<i32>(record, 8) + by
  store<i32>(record, owed, 8)
  if (owed === 0 && record >= recordAt(used)) close(record)
}

/** The gateway asks to be asked no more on a stream; what it owes will come. */
export function retire(token: u32): void {
  const record = find(token)
  if (record === 0 || record >= recordAt(used)) return
  if (load<i32>(record, 8) === 0) {
    close(record)
    return
  }
  for (let place = used; place < kept; place++) {
    const free = recordAt(place)
    if (load<u32>(free) !== 0) continue
    memory.copy(free, record, recordBytes)
    store<u32>(record, 0)
    return
  }
}

/** A stream is gone, as the context in effect is told. Envoy would keep it until its side is closed as well. */
export function forget(token: u32): void {
  const record = find(token)
  if (record !== 0) store<u32>(record, 0)
  proxy_grpc_cancel(token)
}

/** Retires the streams that are old. */
export function replaceOld(tick: u32): void {
  for (let place: u32 = 0; place < used; place++) {
    const token = load<u32>(recordAt(place))
    if (token !== 0 && tick - load<u32>(recordAt(place), 4) > life) retire(token)
  }
}

function recordAt(place: u32): usize {
  return records + <usize>(place * recordBytes)
}

function find(token: u32): usize {
  for (let place: u32 = 0; place < kept; place++) {
    if (load<u32>(recordAt(place)) === token) return recordAt(place)
  }
  return 0
}

function open(record: usize, tick: u32): u32 {
  const root = newestRoot()
  if (proxy_set_effective_context(root) !== 0) return 0
  const failed = proxy_grpc_stream(
    service,
    serviceLength,
    name,
    nameLength,
    method,
    methodLength,
    noHeaders,
    noHeadersBytes,
    result,
  )
  if (failed !== 0) return 0
  const token = load<u32>(result)
  store<u32>(record, token)
  store<u32>(record, tick, 4)
  store<i32>(record, 0, 8)
  store<u32>(record, root, 12)
  return token
}

function close(record: usize): void {
  if (proxy_set_effective_context(load<u32>(record, 12)) === 0) proxy_grpc_close(load<u32>(record))
  store<u32>(record, 0)
}
