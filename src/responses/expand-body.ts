import type { SlicedWork } from '../async/slices.ts'
import { membersOf } from '../json/members-of.ts'
import { readJson } from '../json/read-json.ts'
import { setMembers } from '../json/set-members.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { toEngineItem } from './engine-item.ts'
import type { HistoryItem } from './response-history.ts'
import type { ResponsesTurn } from './responses-turn.ts'

const text = (value: string): readonly Buffer[] => [Buffer.from(value)]
const comma = Buffer.from(',')
/** Of a history that is put together at once, some 1 ms. */
const bytesAtOnce = 262_144

/**
 * The request body for an engine that keeps nothing: the history stands in front of the new items, and the members by
 * which the client asked for it are null. Every other byte is the client's. In slices.
 * @throws GatewayError `request_too_large` beyond `maxBytes`, `item_not_found` for a reference to an unknown item
 */
export function* expandBody(
  body: Buffer,
  { continued, items, scan }: ResponsesTurn,
  { history, maxBytes }: { readonly history: readonly HistoryItem[]; readonly maxBytes: number },
): SlicedWork<Buffer> {
  const values = new Map([['store', text('false')]])
  for (const name of ['previous_response_id', 'conversation']) {
    if (scan.members.has(name)) values.set(name, text('null'))
  }
  if (continued !== undefined) values.set('input', yield* inputOf(items, history, maxBytes - body.length))
  const expanded = setMembers(body, scan, values)
  if (expanded.length > maxBytes) throw tooLarge()
  return expanded
}

const tooLarge = (): GatewayError =>
  new GatewayError('request_too_large', { message: 'The request and the history that it continues are too large.' })

function* inputOf(
  items: readonly Buffer[],
  history: readonly HistoryItem[],
  maxHistoryBytes: number,
): SlicedWork<readonly Buffer[]> {
  const pieces: Buffer[] = []
  let [bytes, since] = [0, 0]
  const add = (piece: Buffer): void => {
    pieces.push(pieces.length === 0 ? Buffer.from('[') : comma, piece)
  }
  for (const { json } of history) {
    const engines = toEngineItem(json)
    if (engines === undefined) continue
    const piece = Buffer.from(engines)
    bytes += piece.length
    if (bytes > maxHistoryBytes) throw tooLarge()
    since += piece.length
    if (since > bytesAtOnce) {
      since = 0
      yield
    }
    add(piece)
  }
  for (const item of items) {
    if (!isKnownReference(item, history)) add(item)
  }
  return pieces.length === 0 ? text('[]') : [...pieces, Buffer.from(']')]
}

const referenceType = Buffer.from('"item_reference"')
const maxReferenceBytes = 1024

/** Clients may name an item that they know to be kept: it is a part of the history. */
const isKnownReference = (item: Buffer, history: readonly HistoryItem[]): boolean => {
  if (item.length > maxReferenceBytes || !item.includes(referenceType)) return false
  const { type, id } = membersOf(readJson(item.toString()))
  if (type !== 'item_reference') return false
  if (history.some((known) => known.id === id)) return true
  throw new GatewayError('item_not_found', {
    param: 'input',
    message: 'The input refers to an item that is not in the history. Send the item itself.',
  })
}
