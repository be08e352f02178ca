import { GatewayError } from '../openai/gateway-error.ts'

/** Allowed times to live, in seconds. */
export interface TtlBounds {
  readonly minTtlSeconds: number
  readonly maxTtlSeconds: number
}

const ttlForm = /^[1-9][0-9]{0,8}$/

/**
 * Reads `x-session-ttl`: whole seconds, once; undefined when the header is missing.
 * @throws GatewayError `invalid_ttl`, `ttl_out_of_range`
 */
export const parseTtlHeader = (values: readonly string[], bounds: TtlBounds): number | undefined => {
  const [value, ...others] = values
  if (value === undefined) return undefined
  if (others.length > 0 || !ttlForm.test(value)) throw new GatewayError('invalid_ttl', { param: 'x-session-ttl' })
  return checkTtl(Number(value), bounds, 'x-session-ttl')
}

/**
 * Checks a TTL from a body.
 * @throws GatewayError `invalid_ttl`, `ttl_out_of_range`
 */
export const checkTtl = (ttlSeconds: unknown, bounds: TtlBounds, param: string): number => {
  if (typeof ttlSeconds !== 'number' || !Number.isSafeInteger(ttlSeconds) || ttlSeconds < 1) {
    throw new GatewayError('invalid_ttl', { param, message: `${param} is a whole number of seconds, such as 3600.` })
  }
  if (ttlSeconds < bounds.minTtlSeconds || ttlSeconds > bounds.maxTtlSeconds) {
    throw new GatewayError('ttl_out_of_range', {
      param,
      message: `The TTL must be from ${bounds.minTtlSeconds} to ${bounds.maxTtlSeconds} seconds.`,
    })
  }
  return ttlSeconds
}
