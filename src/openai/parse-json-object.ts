import type { SlicedWork } from '../async/slices.ts'
import { type JsonLimits, type JsonScan, scanJsonObject } from '../json/scan-json-object.ts'
import { GatewayError } from './gateway-error.ts'

/** Most values of a text of which they are built, some 3 ms. */
const maxValues = 10_000

/**
 * Checks that a request body is a JSON object (RFC 8259) with at most one `model`, and finds its `wanted` members,
 * without building a value. In slices.
 * @throws GatewayError `invalid_encoding`, `invalid_json`, `json_too_complex`, `duplicate_key` (`model` given twice)
 */
export function* checkJsonObject(
  body: Buffer,
  limits: JsonLimits,
  wanted: readonly string[] = [],
): SlicedWork<Extract<JsonScan, { kind: 'object' }>> {
  const scan = yield* scanJsonObject(body, limits, ['model', ...wanted])
  switch (scan.kind) {
    case 'object':
      if ((scan.members.get('model')?.count ?? 0) > 1) throw new GatewayError('duplicate_key', { param: 'model' })
      return scan
    case 'other-json':
      throw new GatewayError('invalid_json')
    case 'not-json':
      throw new GatewayError('invalid_json', {
        message: 'The request body is not valid JSON. A trailing comma or a missing quote is the usual cause.',
      })
    case 'not-utf8':
      throw new GatewayError('invalid_encoding')
    case 'too-complex':
      throw new GatewayError('json_too_complex', {
        message: `The request body is nested deeper than ${limits.maxJsonDepth} levels or has more than ${limits.maxJsonKeys} members, arrays or objects.`,
      })
  }
}

/**
 * Parses a request body that must be a JSON object of at most 10,000 values and `maxBytes`, both of which take time. A
 * Map, so that no key reaches a prototype.
 * @throws GatewayError as {@link checkJsonObject}, and `request_too_large`
 */
export function* parseJsonObject(
  body: Buffer,
  limits: JsonLimits & { readonly maxBytes: number },
): SlicedWork<ReadonlyMap<string, unknown>> {
  if (body.length > limits.maxBytes) throw new GatewayError('request_too_large')
  const { values } = yield* checkJsonObject(body, limits)
  if (values > maxValues) {
    throw new GatewayError('json_too_complex', { message: `The request body has more than ${maxValues} values.` })
  }
  return new Map(Object.entries(JSON.parse(body.toString('utf8'))))
}
