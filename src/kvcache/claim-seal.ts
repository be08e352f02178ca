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

/** `secret` is the tenant secret, shared by all gateways of a deployment; claims of `formerSecret` are opened as well. */
export const createClaimSeal = (secret: string, formerSecret?: string): ClaimSeal => {
  const keyOf = (each: string) => deriveKey(each, 'context-cache claim seal')
  const key = keyOf(secret)
  const keys = formerSecret === undefined ? [key] : [key, keyOf(formerSecret)]
  return {
    seal: (turnId, claim) => seal(key, Buffer.from(JSON.stringify(claim)), turnId).toString('base64url'),
    open: (turnId, sealed) => {
      for (const each of keys) {
        const claim = open(each, Buffer.from(sealed, 'base64url'), turnId)
        if (claim !== undefined) return readJson(claim.toString())
      }
      return undefined
    },
  }
}
