import { deriveKey, open, seal } from '../crypto/seal.ts'
import { readJson } from '../json/read-json.ts'

export type ClaimSeal = ReturnType<typeof createClaimSeal>

/**
 * Seals a connector's claim, bound to its turn: it travels through Envoy's metadata and access log to the gateway that
 * ends the turn, and may hold salts. `secret` is the tenant secret, shared by all gateways of a deployment.
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
