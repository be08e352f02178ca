// Carries out what the gateway decided on a request: the messages Forward and Answer of protos/turns.proto.

import { leaveBody, spliceBody } from './body'
import {
  noGrpcStatus,
  noHeaders,
  noHeadersBytes,
  proxy_get_property,
  proxy_send_local_response,
  proxy_set_effective_context,
  proxy_set_property,
} from './env'
import { isHeaderMap, setRequestHeaders } from './headers'
import { field, malformed, number, readField, text, textLength } from './protobuf'
import { result, writeText } from './scratch'
import * as turns from './turns'

/** What happens to a request by its decision. */
export const cannotBeRead: i32 = 0
export const continues: i32 = 1
/** It is answered, or gone. */
export const isOver: i32 = 2
export const awaitsBody: i32 = 3

/** Properties of a request: its Forward message until the body is whole, and its ticket, for the access log. */
const forwardProperty = 'forward'
const turnProperty = 'turn'
const name: usize = memory.data(16)

let leavesBodies: bool = false
let headers: usize = 0
let headersLength: i32 = 0
let model: usize = 0
let modelLength: i32 = 0
let splice: usize = 0
let spliceLength: i32 = 0
let ticket: usize = 0
let ticketLength: i32 = 0

/** Whether the Lua file appends to all bodies: where Envoy holds all of a paused request, this filter sees none. */
export function setLeavesBodies(leaves: bool): void {
  leavesBodies = leaves
}

/** Forwards a request. Its context is in effect then; if the message cannot be read, nothing is done. */
export function forward(entry: usize, message: usize, length: i32): i32 {
  if (!readForward(message, message + length)) return cannotBeRead
  if (proxy_set_effective_context(turns.idOf(entry)) !== 0) return isOver
  turns.decide(entry)
  setRequestHeaders(headers)
  if (ticketLength > 0) proxy_set_property(name, writeText(turnProperty, name), ticket, ticketLength)
  if (modelLength === 0 && spliceLength === 0) return continues
  if (leavesBodies) {
    leaveBody(model, modelLength, splice, spliceLength)
    return continues
  }
  if (!turns.isBodyWhole(entry)) {
    proxy_set_property(name, writeText(forwardProperty, name), message, length)
    return awaitsBody
  }
  spliceBody(model, modelLength, splice, spliceLength)
  return continues
}

/** Does the rest for a request whose context is in effect, once its body is whole. */
export function finishForward(): void {
  if (proxy_get_property(name, writeText(forwardProperty, name), result, result + 4) !== 0) return
  const message = <usize>load<u32>(result)
  if (readForward(message, message + load<u32>(result, 4))) spliceBody(model, modelLength, splice, spliceLength)
}

function readForward(message: usize, end: usize): bool {
  headers = noHeaders
  headersLength = noHeadersBytes
  modelLength = 0
  spliceLength = 0
  ticketLength = 0
  for (let at = message; at < end; ) {
    at = readField(at, end)
    if (at === malformed) return false
    if (field === 1) {
      headers = text
      headersLength = textLength
    } else if (field === 2) {
      model = text
      modelLength = textLength
    } else if (field === 3) {
      splice = text
      spliceLength = textLength
    } else if (field === 4) {
      ticket = text
      ticketLength = textLength
    }
  }
  return isHeaderMap(headers, headersLength)
}

/** Answers a request in place of a pod. */
export function answer(entry: usize, message: usize, length: i32): i32 {
  const end = message + length
  let status: u32 = 0
  let details: usize = 0
  let detailsLength: i32 = 0
  let map = noHeaders
  let mapLength = noHeadersBytes
  let body: usize = 0
  let bodyLength: i32 = 0
  for (let at = message; at < end; ) {
    at = readField(at, end)
    if (at === malformed) return cannotBeRead
    if (field === 1) status = number
    else if (field === 2) {
      details = text
      detailsLength = textLength
    } else if (field === 3) {
      map = text
      mapLength = textLength
    } else if (field === 4) {
      body = text
      bodyLength = textLength
    }
  }
  if (status < 200 || status > 599 || !isHeaderMap(map, mapLength)) return cannotBeRead
  if (proxy_set_effective_context(turns.idOf(entry)) !== 0) return isOver
  proxy_send_local_response(status, details, detailsLength, body, bodyLength, map, mapLength, noGrpcStatus)
  return isOver
}
