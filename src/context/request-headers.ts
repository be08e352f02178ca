import { nanoid } from 'nanoid'
import { GatewayError } from '../openai/gateway-error.ts'
import { maxModelLength, modelIn } from '../openai/model-in.ts'
import { maxPrefixBytes } from '../routing/prefix-index.ts'
import { type GatewayRequest, requestKeyHeader } from './context-cache-manager.ts'

/** Checks that a body is sent as uncompressed JSON. @throws GatewayError `unsupported_media_type` */
export const checkJsonBody = (request: GatewayRequest): void => {
  const [contentType = '', ...others] = request.header('content-type')
  const isJson = /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType)
  if (!isJson || others.length > 0) throw new GatewayError('unsupported_media_type', { param: 'content-type' })
  checkSpliceable(request)
}

/**
 * Checks that Envoy can splice members into the body. An engine decodes what is compressed, and llama-server reads a
 * form as an object of its parts: either has other members than those at the end of the body.
 * @throws GatewayError `unsupported_media_type`
 */
export const checkSpliceable = (request: GatewayRequest): void => {
  const encodings = request.header('content-encoding')
  if (encodings.some((value) => value !== '' && value.toLowerCase() !== 'identity'))
    throw new GatewayError('unsupported_media_type', { param: 'content-encoding' })
  if (request.header('content-type').some((value) => /multipart\//i.test(value)))
    throw new GatewayError('unsupported_media_type', { param: 'content-type' })
}

/** Allowed times to live, in seconds. */
export interface TtlBounds {
  readonly minTtlSeconds: number
  readonly maxTtlSeconds: number
}

/** Reads `x-session-ttl`, if it is there. @throws GatewayError `invalid_ttl`, `ttl_out_of_range` */
export const parseTtlHeader = (request: GatewayRequest, bounds: TtlBounds): number | undefined => {
  const [value, ...others] = request.header('x-session-ttl')
  if (value === undefined) return undefined
  if (others.length > 0 || !/^[1-9][0-9]{0,8}$/.test(value))
    throw new GatewayError('invalid_ttl', { param: 'x-session-ttl' })
  return checkTtl(Number(value), bounds, 'x-session-ttl')
}

/** Checks a time to live, which `param` names in errors. @throws GatewayError `invalid_ttl`, `ttl_out_of_range` */
export const checkTtl = (ttlSeconds: unknown, bounds: TtlBounds, param: string): number => {
  if (typeof ttlSeconds !== 'number' || !Number.isSafeInteger(ttlSeconds) || ttlSeconds < 1) {
    throw new GatewayError('invalid_ttl', { param, message: `${param} is a whole number of seconds, such as 3600.` })
  }
  const { minTtlSeconds: min, maxTtlSeconds: max } = bounds
  if (ttlSeconds < min || ttlSeconds > max)
    throw new GatewayError('ttl_out_of_range', { param, message: `The TTL must be from ${min} to ${max} seconds.` })
  return ttlSeconds
}

/**
 * A new id for the request's turn: its key (`requestKeyHeader`), if valid, and a random part. Envoy asks another
 * gateway by the same key where the first one stalls, and neither releases what the other one holds.
 */
export const turnIdFor = (request: Pick<GatewayRequest, 'header'>): string => {
  const [key = ''] = request.header(requestKeyHeader)
  return isRequestKey(key) ? `${key}.${nanoid(6)}` : nanoid(16)
}

/** Whether a turn can have this key. */
export const isRequestKey = (key: string): boolean => /^[\w-]{1,57}$/.test(key)

/** The key of the request that a turn is of, or the turn's random id. */
export const requestKeyOf = (turnId: string): string => turnId.replace(/\..*$/s, '')

/** Header with the model of a request's body, as body-based routers in front of Envoy set it. */
const modelHeader = 'x-gateway-model-name'

/** The model of a request without a session: from its header, else from as much of its `body` as there is, if any. */
export const namedModel = (request: Pick<GatewayRequest, 'header'>, body?: Buffer): string | undefined => {
  const [model = ''] = request.header(modelHeader)
  if (model !== '' && model.length <= maxModelLength) return model
  return body && modelIn(body.subarray(0, maxPrefixBytes))
}
