import { createHmac } from 'node:crypto'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { IdempotencyKey } from '../sessions/session-store.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

const idempotencyKeyMemoryMs = 24 * 60 * 60 * 1000
const sdkRetryMemoryMs = 10 * 60 * 1000

/**
 * How the store recognises a repeated create: by `Idempotency-Key`, for 24 hours; else, where an OpenAI SDK numbers its
 * tries (`x-stainless-retry-count`), by tenant and body, for 10 minutes. A first try is only recorded: conversations
 * with the same first request stay two. Undefined (the body is not hashed): each create makes a session.
 * @throws GatewayError `invalid_idempotency_key`
 */
export const idempotencyKeyOf = (
  request: GatewayRequest,
  create: { readonly tenant: TenantKey; readonly form: string; readonly body: Uint8Array; readonly secret: string },
): IdempotencyKey | undefined => {
  const hmac = (label: string, value: string | Uint8Array): string =>
    createHmac('sha256', create.secret).update(`${label}\n`).update(value).digest('base64url')
  const bodyDigest = (): string => hmac(`body\n${create.form}`, create.body)
  const digest = (kind: 'key' | 'body', value: string): string => hmac(`retry\n${kind}\n${create.tenant}`, value)

  const [key, ...others] = request.header('idempotency-key')
  if (key !== undefined) {
    if (others.length > 0 || !/^[\x20-\x7e]{1,255}$/.test(key))
      throw new GatewayError('invalid_idempotency_key', { param: 'Idempotency-Key' })
    return {
      digest: digest('key', key),
      bodyDigest: bodyDigest(),
      rememberMs: idempotencyKeyMemoryMs,
      use: 'find-or-record',
    }
  }
  const [retryCount = ''] = request.header('x-stainless-retry-count')
  if (!/^\d{1,3}$/.test(retryCount)) return undefined
  const body = bodyDigest()
  return {
    digest: digest('body', body),
    bodyDigest: body,
    rememberMs: sdkRetryMemoryMs,
    use: retryCount === '0' ? 'record-only' : 'find-young-or-record',
  }
}
