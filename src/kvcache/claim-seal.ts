import { deriveKey, open, seal } from '../crypto/seal.ts'
import { readJson } from '../json/read-json.ts'

export type ClaimSeal = ReturnType<typeof createClaimSeal>

/**
 * Seals what a connector claims for a turn: a claim travels through Envoy's metadata and access log to the gateway that ends the turn, and may
 * hold salts. Bound to the turn. `secret` is the tenant secret, which all gateways of a deployment share.
 */
export const createClaimSeal = (secret: string) => {
  const key = deriveKey(secret, 'context-cache claim seal')
  return {
    /** `claim` is a JSON value. */
    seal: (turnId: string, claim: unknown): string =>
      seal(key, Buffer.from(JSON.stringify(claim)), turnId).toString('base64url'),
    /** Undefined: the text is damaged, belongs to another turn, or was sealed with another secret. */
    open: (turnId: string, sealed: string): unknown => {
      const claim = open(key, Buffer.from(sealed, 'base64url'), turnId)
      return claim && readJson(claim.toString())
    },
  }
}
