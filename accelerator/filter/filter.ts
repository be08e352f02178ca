// The accelerator: asks a gateway about each turn, and carries out the decision. A request is forwarded unchanged if no
// gateway can be asked or none decides in time. Meanwhile its body is held.

import { find, quote } from './bytes'
import { answer, awaitsBody, cannotBeRead, continues, finishForward, forward, setLeavesBodies } from './decision'
import {
  continueIteration,
  counter,
  grpcMessage,
  pauseIteration,
  pluginConfiguration,
  proxy_continue_stream,
  proxy_define_metric,
  proxy_get_header_map_pairs,
  proxy_increment_metric,
  proxy_set_effective_context,
  proxy_set_tick_period_milliseconds,
  requestHeaders,
  requestSide,
} from './env'
import { field, malformed, number, readField, text, textLength } from './protobuf'
import { addRoot, newestRoot, removeRoot } from './roots'
import { begin, mark, readBuffer, release, result, take, writeText } from './scratch'
import * as streams from './streams'
import * as turns from './turns'

const tickMilliseconds: u32 = 100
/** As `message_timeout` and `max_message_timeout` of the ext_proc filter, in ticks. */
const waitTicks: u32 = 20
const maxWaitTicks: u32 = 300
/** As often as Envoy repeats a call that failed. */
const maxRepeats: u32 = 2

// Fields of TurnsReply and Decision.
const decisionsField: u32 = 1
const retireField: u32 = 2
const idField: u32 = 1
const forwardField: u32 = 2
const answerField: u32 = 3
const extendField: u32 = 4

let tick: u32 = 0
let unaskedTotal: i32 = 0
let timedOutTotal: i32 = 0
let repeatedTotal: i32 = 0

export function proxy_abi_version_0_2_1(): void {}

export function proxy_on_memory_allocate(size: usize): usize {
  return take((size + 7) & ~7)
}

export function proxy_on_vm_start(_id: u32, _length: i32): i32 {
  unaskedTotal = define('turns.unasked')
  timedOutTotal = define('turns.timed_out')
  repeatedTotal = define('turns.repeated')
  return 1
}

export function proxy_on_configure(id: u32, _length: i32): i32 {
  begin()
  if (!readBuffer(pluginConfiguration) || !configure(load<u32>(result), load<i32>(result, 4))) return 0
  addRoot(id)
  proxy_set_tick_period_milliseconds(tickMilliseconds)
  return 1
}

/** `CLUSTER`, or `CLUSTER lua` where the Lua file appends to all bodies. Envoy Gateway passes it as JSON, in quotes. */
function configure(text: usize, length: i32): bool {
  if (length > 1 && load<u8>(text) === quote && load<u8>(text + length - 1) === quote) {
    text += 1
    length -= 2
  }
  const mode = find(text, text + length, ' lua')
  setLeavesBodies(mode < text + length)
  return streams.setCluster(text, <i32>(mode - text))
}

export function proxy_on_request_headers(id: u32, _headers: i32, isWhole: i32): i32 {
  const token = ask(id)
  if (token === 0) {
    proxy_increment_metric(unaskedTotal, 1)
    return continueIteration
  }
  turns.add(id, token, tick + waitTicks, isWhole !== 0)
  return pauseIteration
}

export function proxy_on_request_body(id: u32, _length: i32, isLast: i32): i32 {
  const entry = turns.find(id)
  if (entry === 0) return continueIteration
  if (isLast === 0) return pauseIteration
  turns.setBodyWhole(entry)
  if (turns.isUndecided(entry)) return pauseIteration
  begin()
  finishForward()
  turns.remove(entry)
  return continueIteration
}

export function proxy_on_request_trailers(id: u32, _trailers: i32): i32 {
  return proxy_on_request_body(id, 0, 1)
}

export function proxy_on_grpc_receive(_context: u32, token: u32, _length: i32): void {
  begin()
  if (!readBuffer(grpcMessage)) return
  const message = <usize>load<u32>(result)
  const end = message + <usize>load<u32>(result, 4)
  for (let at = message; at < end; ) {
    at = readField(at, end)
    if (at === malformed) break
    // What one decision takes, which may be a whole body, is free for the next one.
    const free = mark()
    if (field === decisionsField) takeDecision(token, text, text + textLength)
    else if (field === retireField && number !== 0) streams.retire(token)
    release(free)
  }
  streams.replied()
}

export function proxy_on_grpc_close(_context: u32, token: u32, _status: i32): void {
  streams.forget(token)
  if (turns.allDecided()) return
  for (let place: u32 = 0; place < turns.places; place++) {
    let entry = turns.undecidedAt(place)
    // What is taken out may bring another entry to its place.
    while (entry !== 0 && turns.tokenOf(entry) === token && !askAgain(entry)) {
      forwardUndecided(entry)
      entry = turns.undecidedAt(place)
    }
  }
}

/** Comes for each listener's context; time passes by the newest one. */
export function proxy_on_tick(context: u32): void {
  if (context !== newestRoot()) return
  tick += 1
  begin()
  streams.replaceOld(tick)
  if (turns.allDecided()) return
  for (let place: u32 = 0; place < turns.places; place++) {
    let entry = turns.undecidedAt(place)
    while (entry !== 0 && <i32>(turns.deadlineOf(entry) - tick) <= 0) {
      streams.sendCancel(turns.tokenOf(entry), turns.idOf(entry))
      proxy_increment_metric(timedOutTotal, 1)
      forwardUndecided(entry)
      entry = turns.undecidedAt(place)
    }
  }
}

/** Envoy is done with a request, or with a listener. The client of a request that is still here left. */
export function proxy_on_delete(id: u32): void {
  const entry = turns.find(id)
  if (entry === 0) {
    removeRoot(id)
    return
  }
  if (turns.isUndecided(entry)) {
    begin()
    streams.sendCancel(turns.tokenOf(entry), id)
    streams.settle(turns.tokenOf(entry))
  }
  turns.remove(entry)
}

function takeDecision(token: u32, message: usize, end: usize): void {
  let id: u32 = 0
  let kind: u32 = 0
  let content: usize = 0
  let contentLength: i32 = 0
  let milliseconds: u32 = 0
  for (let at = message; at < end; ) {
    at = readField(at, end)
    if (at === malformed) break
    if (field === idField) id = number
    else {
      kind = field
      content = text
      contentLength = textLength
      milliseconds = number
    }
  }
  const entry = turns.find(id)
  if (entry === 0 || !turns.isUndecided(entry) || turns.tokenOf(entry) !== token) return
  if (kind === extendField) {
    turns.setDeadline(entry, tick + min(milliseconds / tickMilliseconds + 1, maxWaitTicks))
    return
  }
  let outcome = cannotBeRead
  if (kind === forwardField) outcome = forward(entry, content, contentLength)
  else if (kind === answerField) outcome = answer(entry, content, contentLength)
  if (outcome === cannotBeRead) {
    forwardUndecided(entry)
    return
  }
  if (outcome === continues) proxy_continue_stream(requestSide)
  if (outcome !== awaitsBody) turns.remove(entry)
  streams.settle(token)
}

/** Asks once more about a turn whose stream is gone; false when it was asked often enough, or cannot be. */
function askAgain(entry: usize): bool {
  const id = turns.idOf(entry)
  if (turns.repeatsOf(entry) >= maxRepeats || proxy_set_effective_context(id) !== 0) return false
  const token = ask(id)
  if (token === 0) return false
  turns.repeat(entry, token, tick + waitTicks)
  proxy_increment_metric(repeatedTotal, 1)
  return true
}

/** Sends the headers of the request whose context is in effect. Returns the stream that is to reply; 0 for none. */
function ask(id: u32): u32 {
  begin()
  if (!turns.hasRoom() || proxy_get_header_map_pairs(requestHeaders, result, result + 4) !== 0) return 0
  return streams.ask(id, load<u32>(result), load<i32>(result, 4), tick)
}

function forwardUndecided(entry: usize): void {
  if (proxy_set_effective_context(turns.idOf(entry)) === 0) proxy_continue_stream(requestSide)
  proxy_increment_metric(unaskedTotal, 1)
  const token = turns.tokenOf(entry)
  turns.remove(entry)
  streams.settle(token)
}

function define(name: string): i32 {
  begin()
  const at = take(64)
  return proxy_define_metric(counter, at, writeText(name, at), result) === 0 ? load<i32>(result) : 0
}
