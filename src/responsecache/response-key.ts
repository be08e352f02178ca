import { createHash } from 'node:crypto'

/** `json`: one JSON text; `stream`: server-sent events. */
export type AnswerForm = 'json' | 'stream'

/** Names a request. Two keys are of the same request when their identities are equal; equal digests alone do not prove it. */
export interface ResponseKey {
  /** SHA-256 of the identity, base64url. */
  readonly digest: string
  /** Everything that makes the request this one and no other. It holds the prompt, so it goes nowhere but into the cache. */
  readonly identity: Buffer
}

/**
 * The key of a request. The form of its answer is part of it: an answer that came as JSON is never turned into a stream, nor the other way
 * round, because neither could be done to the byte.
 */
export const responseKeyOf = (request: {
  readonly tenant: string
  readonly model: string
  /** With its query. */
  readonly path: string
  readonly form: AnswerForm
  readonly canonicalBody: string
}): ResponseKey => {
  const { tenant, model, path, form, canonicalBody } = request
  // The first line is JSON, which holds no line break: where it ends is beyond doubt.
  const identity = Buffer.from(`${JSON.stringify([tenant, model, path, form])}\n${canonicalBody}`)
  return { digest: createHash('sha256').update(identity).digest('base64url'), identity }
}
