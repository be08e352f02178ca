import { createHmac } from 'node:crypto'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { RetryKey } from '../sessions/session-store.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

const explicitRememberMs = 24 * 60 * 60 * 1000
const automaticRememberMs = 10 * 60 * 1000

/**
 * How a create is recognised when it comes again: by `Idempotency-Key`, for 24 hours; else, where an OpenAI SDK says with
 * `x-stainless-retry-count` which try this is, by tenant and body, for 10 minutes. A first try only writes that down, so that two
 * conversations that start alike stay two. Undefined: every create makes a session.
 * @throws GatewayError `invalid_idempotency_key`
 */
export const retryKeyOf = (
  request: GatewayRequest,
  create: { readonly tenant: TenantKey; readonly bodyDigest: string; readonly secret: string },
): RetryKey | undefined => {
  const digest = (kind: string, value: string): string =>
    createHmac('sha256', create.secret).update(`retry\n${kind}\n${create.tenant}\n${value}`).digest('base64url')
  const [key, ...others] = request.header('idempotency-key')
  if (key !== undefined) {
    if (others.length > 0 || !/^[\x20-\x7e]{1,255}$/.test(key)) {
      throw new GatewayError('invalid_idempotency_key', { param: 'Idempotency-Key' })
    }
    return {
      digest: digest('key', key),
      bodyDigest: create.bodyDigest,
      rememberMs: explicitRememberMs,
      use: 'find-or-record',
    }
  }
  const tries = request.header('x-stainless-retry-count')[0]
  if (tries === undefined || !/^\d{1,3}$/.test(tries)) return undefined
  return {
    digest: digest('body', create.bodyDigest),
    bodyDigest: create.bodyDigest,
    rememberMs: automaticRememberMs,
    use: tries === '0' ? 'record-only' : 'find-or-record',
  }
}
