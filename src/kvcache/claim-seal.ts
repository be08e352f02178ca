import { deriveKey, open, seal } from '../crypto/seal.ts'
import { readJson } from '../json/read-json.ts'

/**
 * Seals a connector's claim, bound to its turn: it travels through Envoy's metadata and access log to the gateway that
 * ends the turn, and may hold salts.
 */
export interface ClaimSeal {
  /** `claim` is a JSON value. */
  seal(turnId: string, claim: unknown): string
  /** Undefined: the text is damaged, belongs to another turn, or was sealed with another secret. */
  open(turnId: string, sealed: string): unknown
}

/** `secret` is the tenant secret, shared by all gateways of a deployment. */
export const createClaimSeal = (secret: string): ClaimSeal => {
  const key = deriveKey(secret, 'context-cache claim seal')
  return {
    seal: (turnId, claim) => seal(key, Buffer.from(JSON.stringify(claim)), turnId).toString('base64url'),
    open: (turnId, sealed) => {
      const claim = open(key, Buffer.from(sealed, 'base64url'), turnId)
      return claim && readJson(claim.toString())
    },
  }
}
