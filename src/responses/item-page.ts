import { GatewayError } from '../openai/gateway-error.ts'
import { viewItem } from './item-view.ts'
import type { HistoryItem } from './response-history.ts'

const defaultPageSize = 20
const maxPageSize = 100
/** A page ends with the item that reaches this: to build more takes more than some 10 ms. */
const maxPageBytes = 2_097_152

/**
 * A page of items by `limit`, `order` (`desc` unless it says `asc`) and `after`. `include` has no effect: all there is of
 * an item is shown. @throws GatewayError `invalid_value`, `item_not_found`
 */
export const pageOf = (oldestFirst: readonly HistoryItem[], query: URLSearchParams): object => {
  const limitText = query.get('limit') ?? String(defaultPageSize)
  const limit = /^[1-9][0-9]{0,2}$/.test(limitText) ? Number(limitText) : 0
  if (limit < 1 || limit > maxPageSize)
    throw new GatewayError('invalid_value', { param: 'limit', message: 'limit is a whole number from 1 to 100.' })
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc')
    throw new GatewayError('invalid_value', { param: 'order', message: 'order is asc or desc.' })
  const items = order === 'asc' ? oldestFirst : oldestFirst.toReversed()
  const rest = items.slice(startOf(items, query.get('after')))
  return listOf(firstOf(rest, limit), rest.length)
}

/** Some items as a list; `outOf`: as many as there are with those that follow. */
export const listOf = (items: readonly HistoryItem[], outOf = items.length): object => ({
  object: 'list',
  data: items.map(viewItem),
  first_id: items.at(0)?.id ?? null,
  last_id: items.at(-1)?.id ?? null,
  has_more: outOf > items.length,
})

const startOf = (items: readonly HistoryItem[], after: string | null): number => {
  if (after === null) return 0
  const at = items.findIndex(({ id }) => id === after)
  if (at === -1)
    throw new GatewayError('item_not_found', { param: 'after', message: `Item with id '${after}' not found.` })
  return at + 1
}

const firstOf = (items: readonly HistoryItem[], limit: number): readonly HistoryItem[] => {
  let bytes = 0
  const end = items.findIndex(({ json }) => {
    bytes += json.length
    return bytes >= maxPageBytes
  })
  return items.slice(0, end === -1 ? limit : Math.min(limit, end + 1))
}
