import type { SlicedWork } from '../async/slices.ts'
import { membersOf } from '../json/members-of.ts'
import { readJson } from '../json/read-json.ts'
import type { HistoryItem } from './response-history.ts'

/** What is known of a history's tokens. */
export interface HistoryTokens {
  /** Longest prompt with its answer that the engine takes. */
  readonly contextTokens: number
  /** Tokens of the answer before, its prompt among them, by its `usage`. */
  readonly usedTokens: number
  /** Of the oldest items, how many were left out of that prompt. */
  readonly leftOut: number
  /** UTF-8 bytes of the new items. */
  readonly newBytes: number
  /** Tokens that the answer may take. */
  readonly answerTokens: number
}

/** A part of the counted tokens is of tools and instructions, which stay: items have fewer per byte than it seems. */
const least = 0.8
/** New items may have more tokens per byte than those before. */
const most = 1.2
/** Of items that are looked at at once, some 2 ms. */
const bytesAtOnce = 262_144

/**
 * How many of the oldest items are left out so that the prompt fits the engine's context: as few as possible, and whole
 * turns, so that no output of a tool stands without its call. 0: all fit. In slices.
 */
export function* countToLeaveOut(items: readonly HistoryItem[], tokens: HistoryTokens): SlicedWork<number> {
  const { contextTokens, usedTokens, leftOut, newBytes, answerTokens } = tokens
  const sizes = items.map(({ json }) => Buffer.byteLength(json))
  const sentBytes = sizes.slice(leftOut).reduce((sum, size) => sum + size, 0)
  const perByte = sentBytes === 0 ? 0 : usedTokens / sentBytes
  const room = contextTokens - answerTokens - newBytes * perByte * most
  if (usedTokens <= room) return leftOut
  let [left, count, since] = [usedTokens, leftOut, 0]
  while (count < items.length && (left > room || !beginsTurn(items[count]))) {
    const size = sizes[count] ?? 0
    left -= size * perByte * least
    count += 1
    since += size
    if (since > bytesAtOnce) {
      since = 0
      yield
    }
  }
  return count
}

const turnRoles: ReadonlySet<unknown> = new Set(['user', 'system', 'developer'])

const beginsTurn = (item: HistoryItem | undefined): boolean =>
  turnRoles.has(membersOf(item && readJson(item.json))['role'])
