import { isGiven } from './body-values.ts'

/** What a response has where its request does not say. */
const defaults: ReadonlyMap<string, string> = new Map([
  ['instructions', 'null'],
  ['max_output_tokens', 'null'],
  ['metadata', '{}'],
  ['parallel_tool_calls', 'true'],
  ['reasoning', '{"effort":null,"summary":null}'],
  ['temperature', 'null'],
  ['text', '{"format":{"type":"text"}}'],
  ['tool_choice', '"auto"'],
  ['tools', '[]'],
  ['top_p', 'null'],
  ['truncation', '"disabled"'],
])
const optional: readonly string[] = ['user', 'prompt_cache_key', 'safety_identifier', 'service_tier']

/** The members of a request that its response repeats, as JSON without braces, and those by which it says it is not kept. */
export const echoOf = (given: ReadonlyMap<string, Buffer>): string => {
  const members = [...defaults.keys(), ...optional].flatMap((name) => {
    const value = given.get(name)
    const text = isGiven(value) ? value.toString() : defaults.get(name)
    return text === undefined ? [] : [`"${name}":${text}`]
  })
  return ['"background":false,"previous_response_id":null,"store":false', ...members].join(',')
}
