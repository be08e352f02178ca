/**
 * One text for all spellings of a JSON object: members sorted by name at every depth, no space, one escape for each character, numbers as
 * JavaScript writes them (`1.0` is `1`). Of two members of one name the last counts, as in the engines' parsers. Members of the outermost object
 * that are in `without` are left out.
 *
 * Undefined when a number is beyond 2^53, where a double no longer holds every integer: two requests must not share a key because of rounding.
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
