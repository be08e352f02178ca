import { createHmac } from 'node:crypto'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

/** Derives the tenant of a request. Tenants are HMACs, so that nothing stored or logged leads back to a credential. */
export interface Tenants {
  /** @throws GatewayError `invalid_api_key` when the request carries no credential, an empty one, or several. */
  tenantOf(request: GatewayRequest): TenantKey
  /** The tenant by the other secret, while secrets are rotated; else undefined. @throws as `tenantOf` */
  formerTenantOf(request: GatewayRequest): TenantKey | undefined
}

/**
 * Headers that carry a credential: `Authorization` with its scheme, and the bare keys of Anthropic's and Azure's
 * clients. Of several the first one counts.
 */
const credentialHeaders = ['authorization', 'x-api-key', 'api-key'] as const

/**
 * `principalHeader` names a header that an authentication filter in front of the gateway sets (and strips from
 * clients): the tenant then outlives the rotation of its key. Without it the credential is the tenant: a key is the same
 * one as a bearer token.
 */
export const createTenants = (options: {
  readonly secret: string
  readonly principalHeader?: string | undefined
  readonly former?: FormerSecret | undefined
}): Tenants => {
  const { former } = options
  const deriveFrom = (secret: string, request: GatewayRequest): TenantKey => {
    const digest = (kind: 'principal' | 'authorization', value: string): TenantKey =>
      createHmac('sha256', secret).update(`tenant\n${kind}\n${value}`).digest('base64url') as TenantKey
    const principals = options.principalHeader === undefined ? [] : request.header(options.principalHeader)
    const [principal = ''] = principals
    if (principals.length === 1 && principal !== '') return digest('principal', principal)
    const name = credentialHeaders.find((each) => request.header(each).length > 0)
    const [value = '', ...others] = name === undefined ? [] : request.header(name)
    const credential = name === 'authorization' ? value : `Bearer ${value}`
    if (others.length > 0 || !credentialForm.test(credential)) throw new GatewayError('invalid_api_key')
    return digest('authorization', credential)
  }

  return {
    tenantOf: (request) => deriveFrom(options.secret, request),
    formerTenantOf: (request) => {
      if (former === undefined) return undefined
      const tenant = deriveFrom(former.secret, request)
      former.add(tenant)
      return tenant
    },
  }
}

/** A scheme and its value. Envoy joins repeated headers with commas, so that a comma means several credentials. */
const credentialForm = /^[^\s,]+ +[^\s,][^,]*$/
