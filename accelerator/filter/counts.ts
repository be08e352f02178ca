// Token counts in answers: the object `usage`, and llama-server's `timings`, which serve for chat streams that did not ask for usage. Their texts are
// noted whole for the gateway to read. In a string of the JSON these names would be escaped, so they are members.

import { closeBrace, colon, find, isDigit, isText, openBrace, quote, skipBlanks } from './bytes'
import { levelOf, stringEnd } from './json-text'
import { take } from './scratch'

export const usageKind: i32 = 0
export const timingsKind: i32 = 1

/** Longer objects are no counts. */
const longestCounts: usize = 4096
/** The most white space, with a colon in it, between a name and its object. */
const longestGap: usize = 16
/** Far more than a real answer needs, and few enough not to hold up the other requests of a worker. */
const mostSteps = 200_000
const mostLevels: i32 = 256

/** What `readPiece` found: the text of each kind's last object, 0 for none, and its length. */
export const found: usize = memory.data(16)

/**
 * Looks for counts in a piece of a stream, the last ones of each kind. Every look is a short one, whatever an engine sends. Returns where an object begins
 * that the piece cuts, else its end.
 */
export function readPiece(start: usize, end: usize): usize {
  memory.fill(found, 0, 16)
  const cutUsage = readKind(start, end, usageKind)
  const cutTimings = readKind(start, end, timingsKind)
  return min(cutUsage, cutTimings)
}

/** Looks for the usage of an answer that is one JSON text: the last one that is a member of the answer itself. */
export function readWhole(start: usize, end: usize): void {
  memory.fill(found, 0, 16)
  const name = find(start, end, '"usage"')
  if (name >= end) return
  let object = objectBehind(name + 7, end)
  let objectEnd = object === 0 ? 0 : endOf(object, end)
  if (objectEnd === 0 || !endsAnswer(objectEnd, end)) {
    object = usageOpensAt(name, end)
    objectEnd = object === 0 ? 0 : endOf(object, end)
  }
  if (objectEnd !== 0) note(usageKind, object, objectEnd)
}

function readKind(start: usize, end: usize, kind: i32): usize {
  let cut = end
  let opened: usize = 0
  let begins: usize = 0
  // What is looked for begins with a letter that is rare in a token.
  const rest = kind === usageKind ? 'usage"' : 'mings"'
  const lead = kind === usageKind ? '"' : '"ti'
  let at = find(start, end, rest)
  while (at < end) {
    const stop = at + rest.length
    const name = at - lead.length
    if (at - start >= <usize>lead.length && isText(name, lead)) {
      const object = objectBehind(stop, end)
      if (object !== 0) {
        opened = object
        begins = name
      } else if (end - stop < longestGap && isGap(stop, end) && name < cut) cut = name
    }
    at = find(stop, end, rest)
  }
  if (opened === 0) return cut
  const objectEnd = endOf(opened, end)
  if (objectEnd !== 0) note(kind, opened, objectEnd)
  else if (end - opened <= longestCounts && begins < cut) cut = begins
  return cut
}

/** Where the object opens that stands behind a name; 0 when none does. */
function objectBehind(at: usize, end: usize): usize {
  const limit = end - at > longestGap ? at + longestGap : end
  const colonAt = skipBlanks(at, limit)
  if (colonAt >= limit || load<u8>(colonAt) !== colon) return 0
  const object = skipBlanks(colonAt + 1, limit)
  return object < limit && load<u8>(object) === openBrace ? object : 0
}

/** Whether there is nothing but white space and a colon. */
function isGap(at: usize, end: usize): bool {
  const colonAt = skipBlanks(at, end)
  return colonAt >= end || (load<u8>(colonAt) === colon && skipBlanks(colonAt + 1, end) >= end)
}

/** The place behind the brace that closes an object; 0 when it is too long, or cut. */
function endOf(object: usize, end: usize): usize {
  const limit = end - object > longestCounts + 1 ? object + longestCounts + 1 : end
  let depth = 0
  for (let at = object; at < limit; at++) {
    const mark = load<u8>(at)
    if (mark === openBrace) depth++
    else if (mark === closeBrace && --depth === 0) return at + 1
  }
  return 0
}

/** Notes an object that has a count in it. */
function note(kind: i32, object: usize, objectEnd: usize): void {
  const count = kind === usageKind ? '_tokens"' : '"prompt_n"'
  let at = find(object, objectEnd, count)
  while (at < objectEnd) {
    const colonAt = skipBlanks(at + count.length, objectEnd)
    if (colonAt < objectEnd && load<u8>(colonAt) === colon) {
      const value = skipBlanks(colonAt + 1, objectEnd)
      if (value < objectEnd && isDigit(load<u8>(value))) {
        store<u32>(found + 8 * kind, <u32>object)
        store<u32>(found + 8 * kind, <u32>(objectEnd - object), 4)
        return
      }
    }
    at = find(at + count.length, objectEnd, count)
  }
}

/** As most answers end: with their usage. */
function endsAnswer(at: usize, end: usize): bool {
  const brace = skipBlanks(at, end)
  return brace < end && load<u8>(brace) === closeBrace && skipBlanks(brace + 1, end) >= end
}

/**
 * Where the "usage" of an answer opens, given where its first one stands; 0 for none. Levels count from there, and downwards out of it. Of an answer with
 * too much in it, the outermost one that was seen.
 */
function usageOpensAt(from: usize, end: usize): usize {
  const opens = take(mostLevels * 4)
  memory.fill(opens, 0, mostLevels * 4)
  let level = 0
  let outermost = 0
  let steps = 0
  for (let at = from; at < end; at++) {
    const mark = load<u8>(at)
    if (mark !== quote) {
      level += levelOf(mark)
      continue
    }
    const stop = stringEnd(at + 1, end)
    if (stop >= end || ++steps > mostSteps) return openAt(opens, outermost)
    const object = stop - at === 6 && isText(at, '"usage"') ? objectBehind(stop + 1, end) : 0
    if (object !== 0 && isOutwards(level)) {
      store<u32>(opens + -level * 4, <u32>object)
      if (level < outermost) outermost = level
    }
    at = stop
  }
  return openAt(opens, level + 1)
}

function isOutwards(level: i32): bool {
  return level <= 0 && -level < mostLevels
}

function openAt(opens: usize, level: i32): usize {
  return isOutwards(level) ? load<u32>(opens + -level * 4) : 0
}
