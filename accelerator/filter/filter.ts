// Envoy's filter for turns: asks a gateway what to do with a request, and does it. A gateway that cannot be asked, or does not answer in time, does
// not stop a request: it goes on as it came. Whoever is asked, the body is held meanwhile.

import { takeBody, takeHeaders } from './answer'
import {
  counter,
  goOn,
  grpcMessage,
  pause,
  proxy_continue_stream,
  proxy_define_metric,
  proxy_get_buffer_bytes,
  proxy_get_header_map_pairs,
  proxy_increment_metric,
  proxy_set_effective_context,
  proxy_set_tick_period_milliseconds,
  requestHeaders,
  requestSide,
  vmConfiguration,
} from './env'
import { addRoot, removeRoot } from './roots'
import { begin, result, take, writeText } from './scratch'
import { choose, configure, forget, owe, replaceOld, retire, send } from './streams'
import * as turns from './turns'
import {
  answerAsTold,
  answerKind,
  finishWithBody,
  goOnAsTold,
  goOnKind,
  headBytes,
  laterKind,
  malformed,
  ready,
  retireKind,
  wantsBody,
} from './verdict'

const tickMilliseconds: u32 = 100
/** As `message_timeout` and `max_message_timeout` of the ext_proc filter, in ticks. */
const patience: u32 = 20
const mostPatience: u32 = 300
/** As often as Envoy repeats a call that failed. */
const mostRepeats: u32 = 2

const askKind: u8 = 1
const leftKind: u8 = 2
/** Kind, id, and whether the request has no body; then its headers as Envoy writes them. */
const askBytes: i32 = 6

let tick: u32 = 0
let unaskedTotal: i32 = 0
let timedOutTotal: i32 = 0
let repeatedTotal: i32 = 0

export function proxy_abi_version_0_2_1(): void {}

export function proxy_on_memory_allocate(size: usize): usize {
  return take((size + 7) & ~7)
}

export function proxy_on_vm_start(_id: u32, length: i32): i32 {
  begin(0)
  if (proxy_get_buffer_bytes(vmConfiguration, 0, length, result, result + 4) !== 0) return 0
  if (!configure(load<u32>(result), load<i32>(result, 4))) return 0
  unaskedTotal = define('turns.unasked')
  timedOutTotal = define('turns.timed_out')
  repeatedTotal = define('turns.repeated')
  proxy_set_tick_period_milliseconds(tickMilliseconds)
  return 1
}

/** Envoy tells of the contexts of configurations here, which is less often than of every context as it is created. */
export function proxy_on_configure(id: u32, _length: i32): i32 {
  addRoot(id)
  return 1
}

export function proxy_on_request_headers(id: u32, _headers: i32, isWhole: i32): i32 {
  const token = ask(id, isWhole)
  if (token === 0) {
    proxy_increment_metric(unaskedTotal, 1)
    return goOn
  }
  turns.add(id, token, tick + patience, isWhole !== 0)
  return pause
}

export function proxy_on_request_body(id: u32, _length: i32, isLast: i32): i32 {
  const entry = turns.find(id)
  if (entry === 0) return goOn
  const isAwaited = turns.wantsBody(entry)
  if (!isAwaited && !turns.isUndecided(entry)) return goOn
  if (isLast === 0) return pause
  turns.setBodyThere(entry)
  return isAwaited ? finishDecided(entry) : pause
}

export function proxy_on_request_trailers(id: u32, _trailers: i32): i32 {
  return proxy_on_request_body(id, 0, 1)
}

export function proxy_on_response_headers(id: u32, _headers: i32, isWhole: i32): i32 {
  const entry = turns.find(id)
  return entry === 0 ? goOn : takeHeaders(entry, isWhole !== 0)
}

export function proxy_on_response_body(id: u32, _length: i32, isLast: i32): i32 {
  const entry = turns.find(id)
  return entry === 0 ? goOn : takeBody(entry, isLast !== 0)
}

export function proxy_on_response_trailers(id: u32, _trailers: i32): i32 {
  return proxy_on_response_body(id, 0, 1)
}

export function proxy_on_grpc_receive(_context: u32, token: u32, length: i32): void {
  begin(0)
  if (length < headBytes || proxy_get_buffer_bytes(grpcMessage, 0, length, result, result + 4) !== 0) return
  const message = <usize>load<u32>(result)
  const kind = load<u8>(message)
  if (kind === retireKind) {
    retire(token)
    return
  }
  const entry = turns.find(load<u32>(message, 1))
  if (entry === 0 || !turns.isUndecided(entry) || turns.tokenOf(entry) !== token) return
  takeVerdict(entry, kind, message, message + length)
}

export function proxy_on_grpc_close(_context: u32, token: u32, _status: i32): void {
  forget(token)
  if (turns.allDecided()) return
  for (let place: u32 = 0; place < turns.places; place++) {
    let entry = turns.undecidedAt(place)
    // What is taken out may bring another entry to its place.
    while (entry !== 0 && turns.tokenOf(entry) === token && !askAgain(entry)) {
      passUnasked(entry)
      entry = turns.undecidedAt(place)
    }
  }
}

export function proxy_on_tick(_context: u32): void {
  tick += 1
  replaceOld(tick)
  if (turns.allDecided()) return
  for (let place: u32 = 0; place < turns.places; place++) {
    let entry = turns.undecidedAt(place)
    while (entry !== 0 && <i32>(turns.deadlineOf(entry) - tick) <= 0) {
      tellLeft(entry)
      proxy_increment_metric(timedOutTotal, 1)
      passUnasked(entry)
      entry = turns.undecidedAt(place)
    }
  }
}

/** Envoy is done with a request, or with a configuration. A request that still waits was left by its client. */
export function proxy_on_delete(id: u32): void {
  const entry = turns.find(id)
  if (entry === 0) {
    removeRoot(id)
    return
  }
  if (turns.isUndecided(entry)) {
    tellLeft(entry)
    owe(turns.tokenOf(entry), -1)
  }
  turns.remove(entry)
}

function takeVerdict(entry: usize, kind: u8, message: usize, end: usize): void {
  if (kind === laterKind) {
    if (message + headBytes + 4 > end) return
    const ticks = load<u32>(message, headBytes) / tickMilliseconds + 1
    turns.setDeadline(entry, tick + min(ticks, mostPatience))
    return
  }
  let outcome = malformed
  if (kind === goOnKind) outcome = goOnAsTold(entry, message, end)
  else if (kind === answerKind) outcome = answerAsTold(entry, message, end)
  if (outcome === malformed) {
    passUnasked(entry)
    return
  }
  const token = turns.tokenOf(entry)
  if (outcome === ready) proxy_continue_stream(requestSide)
  if (outcome !== wantsBody) letGo(entry, outcome)
  // Which may close the stream, in another context.
  owe(token, -1)
}

/** The body of a request whose verdict is there is whole. */
function finishDecided(entry: usize): i32 {
  begin(0)
  const outcome = finishWithBody()
  letGo(entry, outcome)
  return outcome === ready ? goOn : pause
}

/** A request goes on to its pod, where a turn's answer is awaited, or needs nothing any more. */
function letGo(entry: usize, outcome: i32): void {
  if (outcome === ready && turns.hasTicket(entry)) turns.setState(entry, turns.wentOn)
  else turns.remove(entry)
}

/** Asks the gateways for a turn whose stream is gone once more; false when it has been asked for often enough, or cannot be. */
function askAgain(entry: usize): bool {
  const id = turns.idOf(entry)
  if (turns.repeatsOf(entry) >= mostRepeats || proxy_set_effective_context(id) !== 0) return false
  const token = ask(id, 0)
  if (token === 0) return false
  turns.repeat(entry, token, tick + patience)
  proxy_increment_metric(repeatedTotal, 1)
  return true
}

/** Sends the headers of the request whose context is in effect. Returns the stream that owes a verdict then; 0 for none. */
function ask(id: u32, isWhole: i32): u32 {
  if (!turns.hasRoom()) return 0
  const message = begin(askBytes)
  if (proxy_get_header_map_pairs(requestHeaders, result, result + 4) !== 0) return 0
  // They stand right behind, as the first that Envoy hands over.
  if (<usize>load<u32>(result) !== message + askBytes) return 0
  const length = askBytes + load<i32>(result, 4)
  const token = choose(tick)
  if (token === 0) return 0
  store<u8>(message, askKind)
  store<u32>(message, id, 1)
  store<u8>(message, <u8>isWhole, 5)
  if (!send(token, message, length)) return 0
  owe(token, 1)
  return token
}

function tellLeft(entry: usize): void {
  const message = begin(headBytes)
  store<u8>(message, leftKind)
  store<u32>(message, turns.idOf(entry), 1)
  send(turns.tokenOf(entry), message, headBytes)
}

function passUnasked(entry: usize): void {
  if (proxy_set_effective_context(turns.idOf(entry)) === 0) proxy_continue_stream(requestSide)
  proxy_increment_metric(unaskedTotal, 1)
  const token = turns.tokenOf(entry)
  turns.remove(entry)
  owe(token, -1)
}

function define(name: string): i32 {
  const at = begin(64)
  return proxy_define_metric(counter, at, writeText(name, at), result) === 0 ? load<i32>(result) : 0
}
