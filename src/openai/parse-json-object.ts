import { GatewayError } from './gateway-error.ts'
import { countModelKeys } from './scan-json.ts'

/** Checked before a JSON text is parsed: parsing blocks the event loop, up to 1 s on a hostile text of 8 to 11 MB. */
export interface JsonLimits {
  /** Deepest nesting of objects and arrays. */
  readonly maxJsonDepth: number
  /** Most object members in the whole text, and most arrays and objects, whose parsing costs as much. */
  readonly maxJsonKeys: number
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a request body that must be a JSON object (RFC 8259). A Map, so that no key reaches a prototype.
 * @throws GatewayError `invalid_encoding`, `invalid_json`, `json_too_complex`, `duplicate_key` (`model` given twice)
 */
export const parseJsonObject = (body: Buffer, limits: JsonLimits): ReadonlyMap<string, unknown> => {
  const modelKeys = countModelKeys(body, limits)
  if (modelKeys === undefined) {
    throw new GatewayError('json_too_complex', {
      message: `The request body is nested deeper than ${limits.maxJsonDepth} levels or has more than ${limits.maxJsonKeys} members, arrays or objects.`,
    })
  }
  let text: string
  try {
    text = decoder.decode(body)
  } catch (cause) {
    throw new GatewayError('invalid_encoding', { cause })
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own message quotes the body, which may be a prompt: it is dropped.
    throw new GatewayError('invalid_json', {
      message: 'The request body is not valid JSON. A trailing comma or a missing quote is the usual cause.',
    })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new GatewayError('invalid_json')
  if (modelKeys > 1) throw new GatewayError('duplicate_key', { param: 'model' })
  return new Map(Object.entries(value))
}
