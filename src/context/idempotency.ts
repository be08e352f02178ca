import { createHmac } from 'node:crypto'
import type { SlicedWork } from '../async/slices.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { IdempotencyKey } from '../sessions/session-store.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

const idempotencyKeyMemoryMs = 24 * 60 * 60 * 1000
const sdkRetryMemoryMs = 10 * 60 * 1000
/** Bytes that are hashed at once: 1 to 4 ms. */
const sliceBytes = 1024 * 1024

/**
 * How the store recognises a repeated create: by `Idempotency-Key`, for 24 hours; else, where an OpenAI SDK numbers its
 * tries (`x-stainless-retry-count`), by tenant and body, for 10 minutes. A first try is only recorded: conversations
 * with the same first request stay two. Undefined (the body is not hashed): each create makes a session. In slices.
 * @throws GatewayError `invalid_idempotency_key`
 */
export function* idempotencyKeyOf(
  request: GatewayRequest,
  create: { readonly tenant: TenantKey; readonly form: string; readonly body: Buffer; readonly secret: string },
): SlicedWork<IdempotencyKey | undefined> {
  const hmac = (label: string) => createHmac('sha256', create.secret).update(`${label}\n`)
  const digest = (kind: 'key' | 'body', value: string): string =>
    hmac(`retry\n${kind}\n${create.tenant}`).update(value).digest('base64url')
  function* bodyDigest(): SlicedWork<string> {
    const hash = hmac(`body\n${create.form}`)
    for (let at = 0; at < create.body.length; at += sliceBytes) {
      if (at > 0) yield
      hash.update(create.body.subarray(at, at + sliceBytes))
    }
    return hash.digest('base64url')
  }

  const [key, ...others] = request.header('idempotency-key')
  if (key !== undefined) {
    if (others.length > 0 || !/^[\x20-\x7e]{1,255}$/.test(key))
      throw new GatewayError('invalid_idempotency_key', { param: 'Idempotency-Key' })
    return {
      digest: digest('key', key),
      bodyDigest: yield* bodyDigest(),
      rememberMs: idempotencyKeyMemoryMs,
      use: 'find-or-record',
    }
  }
  const [retryCount = ''] = request.header('x-stainless-retry-count')
  if (!/^\d{1,3}$/.test(retryCount)) return undefined
  const body = yield* bodyDigest()
  return {
    digest: digest('body', body),
    bodyDigest: body,
    rememberMs: sdkRetryMemoryMs,
    use: retryCount === '0' ? 'record-only' : 'find-young-or-record',
  }
}
