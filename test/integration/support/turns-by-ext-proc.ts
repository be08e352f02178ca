import { parse } from 'yaml'

const wasm = 'envoy.filters.http.wasm'

/**
 * envoy.yaml for an Envoy without Wasm, as its comments say: without the filter for turns, and without what the route says where that one is on. In
 * JSON, since what writes YAML leaves words without quotes that Envoy takes for truth values.
 */
export const turnsByExtProc = (text: string): string => {
  let changes = 0
  const changed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.filter((item) => !isWasmFilter(item)).map(changed)
    if (typeof value !== 'object' || value === null) return value
    const members = Object.entries(value).filter(
      ([key, member]) => key !== 'typed_per_filter_config' || !hasWasm(member),
    )
    changes += Object.keys(value).length - members.length
    return Object.fromEntries(members.map(([key, member]) => [key, changed(member)]))
  }
  const result = changed(parse(text))
  if (changes === 0) throw new Error('envoy.yaml has no route for the filter for turns')
  return JSON.stringify(result)
}

const hasWasm = (filters: unknown): boolean => typeof filters === 'object' && filters !== null && wasm in filters

const isWasmFilter = (item: unknown): boolean =>
  typeof item === 'object' && item !== null && 'name' in item && item.name === wasm
