import { parse } from 'yaml'
import { z } from 'zod'

const wasm = 'envoy.filters.http.wasm'
const extProc = 'envoy.filters.http.ext_proc'

const perFilter = z.record(z.string(), z.unknown())

/**
 * envoy.yaml for an Envoy without Wasm, as its comments say: without the filter for turns, and with the ext_proc filter left on where that one is on.
 * In JSON, since what writes YAML leaves words without quotes that Envoy takes for truth values.
 */
export const turnsByExtProc = (text: string): string => {
  let changes = 0
  const changed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.filter((item) => !isWasmFilter(item)).map(changed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => {
        if (key !== 'typed_per_filter_config') return [key, changed(member)]
        const filters = perFilter.parse(member)
        if (!(wasm in filters)) return [key, member]
        changes += 1
        return [key, Object.fromEntries(Object.entries(filters).filter(([name]) => name !== wasm && name !== extProc))]
      }),
    )
  }
  const result = changed(parse(text))
  if (changes === 0) throw new Error('envoy.yaml has no filter for turns')
  return JSON.stringify(result)
}

const isWasmFilter = (item: unknown): boolean =>
  typeof item === 'object' && item !== null && 'name' in item && item.name === wasm
