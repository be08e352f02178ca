/**
 * Use of an engine's path, other than those of the inference APIs: `generates-otherwise` runs a model on a body that
 * does not take the gateway's members; `reads` uses no KV of other requests. Undefined: not for clients. Other paths
 * are control calls without authentication: they read, copy and delete all tenants' KV, load adapters or run code.
 */
type EngineUse = 'generates-otherwise' | 'reads' | undefined

/** `path` has no query. Each allowed path has one spelling, so that a disguised one is not allowed. */
export const engineUseOf = (method: string, path: string): EngineUse => {
  if (otherwise.has(path)) return 'generates-otherwise'
  if (reading.has(path)) return 'reads'
  return readingMethods.has(method) && models.test(path) && !hidden.test(path) ? 'reads' : undefined
}

const otherwise: ReadonlySet<string> = new Set(['/v1/audio/transcriptions', '/v1/audio/translations'])
const reading: ReadonlySet<string> = new Set(['/v1/embeddings', '/v1/rerank', '/v1/score', '/v1/messages/count_tokens'])
const readingMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Encoded dots, percent signs and backslashes. */
const hidden = /%(?:2e|25|5c)/i
/** No segment is empty, `.` or `..`. */
const models = /^\/v1\/models(?:\/[\w%:@+-]+(?:[./][\w%:@+-]+)*)?$/
