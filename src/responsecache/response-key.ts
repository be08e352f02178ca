import { createHash } from 'node:crypto'

/** `json`: one JSON text; `stream`: server-sent events. */
export type ResponseForm = 'json' | 'stream'

/** Names a request. Keys are of the same request when their identities are equal; equal digests do not prove it. */
export interface ResponseKey {
  /** SHA-256 of the identity, base64url. */
  readonly digest: string
  /** Everything that tells the request from others. It holds the prompt, so it goes nowhere but into the cache. */
  readonly identity: Buffer
}

/** The key of a request and of the form of its response: neither JSON nor a stream becomes the other to the byte. */
export const responseKeyOf = (request: {
  readonly tenant: string
  readonly model: string
  /** With its query. */
  readonly path: string
  readonly form: ResponseForm
  readonly canonicalBody: string
}): ResponseKey => {
  const { tenant, model, path, form, canonicalBody } = request
  // The first line is JSON, which holds no line break: where it ends is beyond doubt.
  const identity = Buffer.from(`${JSON.stringify([tenant, model, path, form])}\n${canonicalBody}`)
  return { digest: createHash('sha256').update(identity).digest('base64url'), identity }
}

/** Whether the key is of a request of this tenant, by its key or the first characters of it. */
export const isOfTenant = ({ identity }: Pick<ResponseKey, 'identity'>, tenant: string): boolean => {
  const beginning = Buffer.from(`["${tenant}`)
  return identity.subarray(0, beginning.length).equals(beginning)
}

/**
 * One text for all spellings of a JSON object: members sorted by name at every depth, no space, one escape for each
 * character, numbers as JavaScript writes them (`1.0` is `1`). Of two members of one name the last counts, as in the
 * engines' parsers. Members of the outermost object that are in `without` are left out.
 *
 * Undefined when a number is beyond 2^53, where doubles skip integers: two requests must not share a key by rounding.
 * `body` must be nested no deeper than the stack allows.
 */
export const canonicalJson = (
  body: ReadonlyMap<string, unknown>,
  options: { readonly without: ReadonlySet<string> },
): string | undefined => {
  let isExact = true
  const members = [...body].filter(([name]) => !options.without.has(name))
  const text = JSON.stringify(Object.fromEntries(members), (_name, value: unknown) => {
    if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) isExact = false
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? sorted(value) : value
  })
  return isExact ? text : undefined
}

const sorted = (value: object): object =>
  Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
