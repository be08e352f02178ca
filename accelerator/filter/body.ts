// A turn's body: read where the gateway wants its model checked, and given the members that the gateway adds.

import { closeBrace, dropBlanks, openBrace, skipBlanks } from './bytes'
import {
  noGrpcStatus,
  proxy_get_buffer_bytes,
  proxy_send_local_response,
  proxy_set_buffer_bytes,
  requestBody,
} from './env'
import { setRequestHeader } from './headers'
import { lookForNames, namesOf, otherModel, splicedName } from './member-names'
import { namesOtherModel } from './other-model'
import { mostBodyBytes, result, take, writeDecimal, writeText } from './scratch'

const comma: u8 = 44

/**
 * Checks the body of the request whose context is in effect, and adds `splice` to its members. A length of -1: no model is expected, or nothing spliced. False when
 * the request was refused.
 */
export function editBody(model: usize, modelLength: i32, splice: usize, spliceLength: i32): bool {
  if (proxy_get_buffer_bytes(requestBody, 0, i32.MAX_VALUE, result, result + 4) !== 0) return true
  const start = <usize>load<u32>(result)
  const length = <usize>load<u32>(result, 4)
  if (length > <usize>mostBodyBytes) return refuse(413, 'request_too_large', 'null', 'The request body is too large.')
  const first = skipBlanks(start, start + length)
  const end = dropBlanks(first, start + length)
  if (end - first < 2 || load<u8>(first) !== openBrace || load<u8>(end - 1) !== closeBrace)
    return refuse(400, 'invalid_json', 'null', 'The request body is not a JSON object.')
  const names = namesOf(splice, splice + max(spliceLength, 0))
  const seen = lookForNames(first, end, model, modelLength, names)
  if (modelLength >= 0 && (seen & otherModel) !== 0 && namesOtherModel(first, end, model, modelLength))
    return refuse(
      400,
      'model_mismatch',
      '"model"',
      'The session was created with another model. Use its model, or create a new context.',
    )
  if (spliceLength < 0) return true
  const isEmpty = skipBlanks(first + 1, end - 1) === end - 1
  const change =
    (seen & splicedName) === 0
      ? putFirst(first + 1 - start, splice, spliceLength, isEmpty)
      : putLast(start, end, length, splice, spliceLength)
  setContentLength(<i32>length + change)
  return true
}

/** Puts members in place of the object's opening brace and what is ahead of it, which leaves the rest of the body where it is. Returns how much longer it is. */
function putFirst(replaced: usize, splice: usize, spliceLength: i32, isEmpty: bool): i32 {
  const start = take(<usize>spliceLength + 2)
  let at = start
  store<u8>(at++, openBrace)
  memory.copy(at, splice, spliceLength)
  at += spliceLength
  if (!isEmpty) store<u8>(at++, comma)
  proxy_set_buffer_bytes(requestBody, 0, <i32>replaced, start, <i32>(at - start))
  return <i32>(at - start) - <i32>replaced
}

/** Of members of one name the last one counts: where the body may have one of its own, the new ones come last. */
function putLast(start: usize, end: usize, length: usize, splice: usize, spliceLength: i32): i32 {
  const whole = take(end - start + spliceLength + 2)
  memory.copy(whole, start, end - start - 1)
  let at = whole + (end - start - 1)
  store<u8>(at++, comma)
  memory.copy(at, splice, spliceLength)
  at += spliceLength
  store<u8>(at++, closeBrace)
  proxy_set_buffer_bytes(requestBody, 0, <i32>length, whole, <i32>(at - whole))
  return <i32>(at - whole) - <i32>length
}

function setContentLength(length: i32): void {
  const value = take(16)
  setRequestHeader('content-length', value, writeDecimal(length, value))
}

/** Answers in OpenAI's form of errors; docs/errors.md tells what these mean. */
function refuse(status: i32, code: string, param: string, message: string): bool {
  const body = take(512)
  let at = body
  at += writeText('{"error":{"message":"', at)
  at += writeText(message, at)
  at += writeText('","type":"invalid_request_error","param":', at)
  at += writeText(param, at)
  at += writeText(',"code":"', at)
  at += writeText(code, at)
  at += writeText('"}}', at)
  const details = at
  at += writeText('ctx_', at)
  at += writeText(code, at)
  const headers = take(128)
  const headersLength = writeHeaders(headers)
  proxy_send_local_response(
    status,
    details,
    <i32>(at - details),
    body,
    <i32>(details - body),
    headers,
    headersLength,
    noGrpcStatus,
  )
  return false
}

function writeHeaders(to: usize): i32 {
  const type = 'content-type'
  const json = 'application/json'
  const retry = 'x-should-retry'
  const never = 'false'
  store<u32>(to, 2)
  store<u32>(to, type.length, 4)
  store<u32>(to, json.length, 8)
  store<u32>(to, retry.length, 12)
  store<u32>(to, never.length, 16)
  let at = writeZeroEnded(type, to + 20)
  at = writeZeroEnded(json, at)
  at = writeZeroEnded(retry, at)
  return <i32>(writeZeroEnded(never, at) - to)
}

function writeZeroEnded(text: string, at: usize): usize {
  const end = at + writeText(text, at)
  store<u8>(end, 0)
  return end + 1
}
