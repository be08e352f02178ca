import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

/** Tells whose a request is. */
export interface Tenants {
  /** @throws GatewayError `invalid_api_key` when the request carries no credential, an empty one, or several. */
  tenantOf(request: GatewayRequest): TenantKey
}

const maxKnown = 1_000
/** Signed tokens may be long; longer ones are digested each time, so that the memory stays bounded. */
const longestKnown = 4_096

/**
 * Tenants by HMAC, so that nothing stored or logged leads back to a credential. `principalHeader` names a header that an authentication
 * filter in front of the gateway sets (and strips from clients): then a tenant outlives the rotation of its key. Without it the
 * Authorization credential is the tenant.
 */
export const createTenants = (options: {
  readonly secret: string
  readonly principalHeader: string | undefined
}): Tenants => {
  // A credential comes with every turn. It is kept in this process's memory alone, where it passes through in any case.
  const principals = new LRUCache<string, TenantKey>({ max: maxKnown })
  const credentials = new LRUCache<string, TenantKey>({ max: maxKnown })
  const digest = (kind: string, value: string): TenantKey =>
    createHmac('sha256', options.secret).update(`tenant\n${kind}\n${value}`).digest('base64url') as TenantKey

  const ofPrincipal = (principal: string): TenantKey => {
    const tenant = principals.get(principal) ?? digest('principal', principal)
    if (principal.length <= longestKnown) principals.set(principal, tenant)
    return tenant
  }

  const ofCredential = (credential: string): TenantKey => {
    const known = credentials.get(credential)
    if (known !== undefined) return known
    if (!isOneCredential(credential)) throw new GatewayError('invalid_api_key')
    const tenant = digest('authorization', credential)
    if (credential.length <= longestKnown) credentials.set(credential, tenant)
    return tenant
  }
  return {
    tenantOf: (request) => {
      const principal = options.principalHeader === undefined ? [] : request.header(options.principalHeader)
      if (principal.length === 1 && principal[0] !== undefined && principal[0] !== '') return ofPrincipal(principal[0])
      const [credential, ...others] = request.header('authorization')
      if (credential === undefined || others.length > 0) throw new GatewayError('invalid_api_key')
      return ofCredential(credential)
    },
  }
}

/**
 * A scheme and what belongs to it. Envoy joins the values of repeated headers with commas; within one credential only parameters
 * (`Digest realm="x", nonce=1`) follow a comma.
 */
const isOneCredential = (value: string): boolean =>
  /^[^\s,]+ +\S/.test(value) && !/,(?!\s*[^\s,="]+\s*=)/.test(value.replaceAll(quoted, '""'))

/** The closing quote may be missing, so that a text made of opening ones is walked once and not once for each. */
const quoted = /"(?:[^"\\]|\\.)*"?/g
