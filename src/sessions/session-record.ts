/** SHA-256 of a session id, base64url, 43 characters: the only form in which an id is stored, logged or passed on. */
export type SessionKey = string & { readonly __brand: 'SessionKey' }

/** By which the log and `GET /v1/context` name a session: the first 8 characters of its key. */
export const digestOf = (key: SessionKey): string => key.slice(0, 8)

/** Characters of a key in base64url. */
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Key of a session's branch, 0 to `maxBranches` - 1: the first is the session's own, others differ in one character. */
export const branchKeyOf = (key: SessionKey, branch: number): SessionKey =>
  (alphabet.charAt((alphabet.indexOf(key.charAt(0)) + branch) % alphabet.length) + key.slice(1)) as SessionKey

/** HMAC-SHA256 of the caller's principal or credential, base64url, 43 characters. */
export type TenantKey = string & { readonly __brand: 'TenantKey' }

/** A session's KV in the persistent store. The session store does not read `payload`: it is the connector's. */
export interface StoredKv {
  /** Unique for every offload. It begins with 22 characters of its session's key, by which a store finds the session. */
  readonly artefactId: string
  /** What the connector needs to load and remove the artefact. */
  readonly payload: string
  /** Tokens whose KV the artefact holds. */
  readonly tokens: number
  /** Size in the persistent store. */
  readonly bytes: number
  /** Number of the completed turn that left it; a later turn's artefact replaces it, never the other way round. */
  readonly turn: number
}

/** Token counts added up over the completed turns of a session. Turns whose answer carried no `usage` add nothing. */
export interface TokenTotals {
  readonly prompt: number
  readonly output: number
  /** Prompt tokens the engines reused, by their own account (`usage.prompt_tokens_details.cached_tokens`). */
  readonly cached: number
}

/** One session. All times are the store's clock, in milliseconds since 1970. */
export interface SessionRecord {
  readonly key: SessionKey
  readonly tenant: TenantKey
  /** The session id, encrypted for its tenant, so that a list can name it. */
  readonly sealedId: string
  readonly model: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly ttlSeconds: number
  /** Completed turns. */
  readonly turns: number
  readonly tokens: TokenTotals
  /** `host:port` of the pod that served the last completed turn, or that the create was sent to. */
  readonly pod: string | undefined
  readonly kv: StoredKv | undefined
  /** Why there is no stored KV (`offload_failed`, `too_short`, …); undefined until the first offload has ended. */
  readonly kvStatus: string | undefined
}
