// This worker's gRPC streams to the gateways. Many turns share a few long streams, since a stream for each request
// costs Envoy as much as the request itself; and turns share messages: what is asked while a message has no reply yet
// is collected, and leaves as one message after the reply. Envoy chooses a gateway for each stream, so several streams
// are used in turn, a message on each, and each is replaced now and then, for new gateways to get their share.

import {
  noHeaders,
  noHeadersBytes,
  proxy_grpc_cancel,
  proxy_grpc_close,
  proxy_grpc_send,
  proxy_grpc_stream,
  proxy_set_effective_context,
} from './env'
import { varintBytes, writeLength, writeNumber } from './protobuf'
import { newestRoot } from './roots'
import { result, take, writeText } from './scratch'

const used: u32 = 4
/** Those in use come first; behind them those that are retired, with pending replies. */
const maxStreams: u32 = 64
/** Token, the tick when it was opened, pending replies, the context that opened it. */
const recordBytes: u32 = 16
const records: usize = memory.data(1024)
/** In ticks. */
const lifetimeTicks: u32 = 300

/** Asks that are collected for the next stream. More than the headers of a request in Envoy's default limits. */
const batchBytes: usize = 131_072
const batch: usize = memory.data(131_072)
let batchLength: u32 = 0
/** Whether a message has no reply yet. */
let isUnanswered: bool = false

const asksField: u32 = 1
const cancelsField: u32 = 2
const idField: u32 = 1
const headersField: u32 = 2

const maxClusterLength: i32 = 120
const authorityLength: i32 = 7
const service: usize = memory.data(144)
const name: usize = memory.data(32)
const method: usize = memory.data(16)
let serviceLength: i32 = 0
let nameLength: i32 = 0
let methodLength: i32 = 0
let next: u32 = 0

/** Streams that are opened from now on go to this cluster. False when the text is no name, or too long. */
export function setCluster(cluster: usize, length: i32): bool {
  if (length < 1 || length > maxClusterLength) return false
  // GrpcService { envoy_grpc { cluster_name, authority } }: by default the name, and Node.js refuses slashes in it.
  let at = writeLength(1, length + authorityLength + 4, service)
  at = writeLength(1, length, at)
  memory.copy(at, cluster, length)
  at = writeLength(2, authorityLength, at + length)
  serviceLength = <i32>(at - service) + writeText('gateway', at)
  nameLength = writeText('contextcache.turns.v1.Turns', name)
  methodLength = writeText('Decide', method)
  return true
}

/** Asks about a request on the next stream. Returns its token; 0 when there is none, or it takes no message. */
export function ask(id: u32, headers: usize, headersLength: i32, tick: u32): u32 {
  const askLength = 1 + varintBytes(id) + 1 + varintBytes(headersLength) + <u32>headersLength
  const length = 1 + varintBytes(askLength) + askLength
  if (<usize>length > batchBytes) return 0
  if (<usize>(batchLength + length) > batchBytes && !flush()) return 0
  const record = recordAt(next)
  const isOpen = load<u32>(record) !== 0 && proxy_set_effective_context(load<u32>(record, 12)) === 0
  if (!isOpen && !open(record, tick)) return 0
  let at = writeLength(asksField, askLength, batch + <usize>batchLength)
  at = writeNumber(idField, id, at)
  at = writeLength(headersField, headersLength, at)
  memory.copy(at, headers, headersLength)
  batchLength += length
  // A gateway replies soon, also when nothing is decided yet.
  if (!isUnanswered && !flush()) return 0
  store<i32>(record, load<i32>(record, 8) + 1, 8)
  return load<u32>(record)
}

/** A reply came: what was collected meanwhile may leave. */
export function replied(): void {
  isUnanswered = false
  flush()
}

/** Tells the gateway that a decision is no longer awaited. */
export function sendCancel(token: u32, id: u32): void {
  const record = find(token)
  if (record === 0 || (record === recordAt(next) && !flush())) return
  const message = take(16)
  if (proxy_set_effective_context(load<u32>(record, 12)) !== 0) return
  proxy_grpc_send(token, message, <i32>(writeNumber(cancelsField, id, message) - message), 0)
}

/** The decision on a turn is no longer pending. Closes a retired stream after its last one. */
export function settle(token: u32): void {
  const record = find(token)
  if (record === 0) return
  const pending = load<i32>(record, 8) - 1
  store<i32>(record, pending, 8)
  if (pending === 0 && record >= recordAt(used)) close(record)
}

/** Asks nothing more on a stream. Its pending replies still count. */
export function retire(token: u32): void {
  const record = find(token)
  if (record === 0 || record >= recordAt(used)) return
  if (record === recordAt(next)) flush()
  if (load<i32>(record, 8) === 0) {
    close(record)
    return
  }
  for (let place = used; place < maxStreams; place++) {
    const free = recordAt(place)
    if (load<u32>(free) !== 0) continue
    memory.copy(free, record, recordBytes)
    store<u32>(record, 0)
    return
  }
}

/** A stream is gone; its context is in effect. Envoy would keep it until this side is closed as well. */
export function forget(token: u32): void {
  const record = find(token)
  if (record === recordAt(next)) batchLength = 0
  if (record !== 0) store<u32>(record, 0)
  proxy_grpc_cancel(token)
  replied()
}

/** Retires the streams that are old. No ask waits longer than a tick for the reply to others: a gateway may hang. */
export function replaceOld(tick: u32): void {
  replied()
  for (let place: u32 = 0; place < used; place++) {
    const token = load<u32>(recordAt(place))
    if (token !== 0 && tick - load<u32>(recordAt(place), 4) > lifetimeTicks) retire(token)
  }
}

/** Sends what is collected, and turns to the next stream. False when that cannot be done; it is discarded then. */
function flush(): bool {
  if (batchLength === 0) return true
  const record = recordAt(next)
  const length = <i32>batchLength
  batchLength = 0
  next = (next + 1) % used
  isUnanswered =
    proxy_set_effective_context(load<u32>(record, 12)) === 0 &&
    proxy_grpc_send(load<u32>(record), batch, length, 0) === 0
  return isUnanswered
}

function recordAt(place: u32): usize {
  return records + <usize>(place * recordBytes)
}

function find(token: u32): usize {
  for (let place: u32 = 0; place < maxStreams; place++) {
    if (load<u32>(recordAt(place)) === token) return recordAt(place)
  }
  return 0
}

function open(record: usize, tick: u32): bool {
  const root = newestRoot()
  memory.fill(record, 0, recordBytes)
  batchLength = 0
  if (proxy_set_effective_context(root) !== 0) return false
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
  if (failed !== 0) return false
  store<u32>(record, load<u32>(result))
  store<u32>(record, tick, 4)
  store<u32>(record, root, 12)
  return true
}

function close(record: usize): void {
  if (proxy_set_effective_context(load<u32>(record, 12)) === 0) proxy_grpc_close(load<u32>(record))
  store<u32>(record, 0)
}
