import { membersOf } from '../json/members-of.ts'
import { GatewayError } from '../openai/gateway-error.ts'

const maxItems = 20
const [maxPairs, maxKeyLength, maxValueLength] = [16, 64, 512]

/** The members of a request body; undefined: it has none. */
export type Body = ReadonlyMap<string, unknown>

/** @throws GatewayError `invalid_value` */
export const metadataIn = (body: Body): Readonly<Record<string, string>> | undefined => {
  const metadata = body.get('metadata')
  if (metadata === undefined || metadata === null) return undefined
  if (typeof metadata !== 'object' || Array.isArray(metadata)) throw invalidMetadata()
  const pairs = Object.entries(metadata)
  const areTexts = pairs.every(
    (pair): pair is [string, string] =>
      pair[0].length <= maxKeyLength && typeof pair[1] === 'string' && pair[1].length <= maxValueLength,
  )
  if (!areTexts || pairs.length > maxPairs) throw invalidMetadata()
  return Object.fromEntries(pairs)
}

const invalidMetadata = (): GatewayError =>
  new GatewayError('invalid_value', {
    param: 'metadata',
    message: 'metadata is an object of at most 16 texts: keys of at most 64 characters, values of at most 512.',
  })

/** Items to be added to a conversation, as JSON texts. @throws GatewayError `invalid_value`, `missing_required_parameter` */
export const itemsIn = (body: Body, use: 'required' | 'optional'): readonly string[] => {
  const items = body.get('items')
  if (items === undefined || items === null) {
    if (use === 'optional') return []
    throw new GatewayError('missing_required_parameter', { param: 'items', message: "Give the items: {'items': […]}." })
  }
  if (!Array.isArray(items) || items.length > maxItems || !items.every(isItem))
    throw new GatewayError('invalid_value', {
      param: 'items',
      message:
        'items is a list of at most 20 objects, each with a type, or a message with a role. References to other items are not supported.',
    })
  return items.map((item) => JSON.stringify(item))
}

const isItem = (item: unknown): boolean => {
  const { type, role, content } = membersOf(item)
  if (type === undefined || type === 'message')
    return typeof role === 'string' && (typeof content === 'string' || Array.isArray(content))
  return typeof type === 'string' && type !== 'item_reference'
}
