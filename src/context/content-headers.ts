import { GatewayError } from '../openai/gateway-error.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

/**
 * Checks that a body which the gateway reads is sent as plain JSON.
 * @throws GatewayError `unsupported_media_type`
 */
export const checkJsonBody = (request: GatewayRequest): void => {
  const [contentType, ...others] = request.header('content-type')
  const isJson = contentType !== undefined && /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType)
  if (!isJson || others.length > 0) throw new GatewayError('unsupported_media_type', { param: 'content-type' })
  checkNotCompressed(request)
}

/**
 * Checks that a body can be read and spliced as it is.
 * @throws GatewayError `unsupported_media_type`
 */
export const checkNotCompressed = (request: GatewayRequest): void => {
  const encodings = request.header('content-encoding')
  if (encodings.some((value) => value !== '' && value.toLowerCase() !== 'identity'))
    throw new GatewayError('unsupported_media_type', { param: 'content-encoding' })
}
