/** The load that an engine reports; 0 where it does not report it. */
export interface EngineLoad {
  readonly running: number
  readonly waiting: number
  /** 0 to 1. */
  readonly kvUsage: number
}

type Reading = { -readonly [Field in keyof EngineLoad]: number }

/** Prometheus sample name → the field it is read into. vLLM's names, then llama-server's. */
const fieldsByName: ReadonlyMap<string, keyof EngineLoad> = new Map([
  ['vllm:num_requests_running', 'running'],
  ['vllm:num_requests_waiting', 'waiting'],
  ['vllm:kv_cache_usage_perc', 'kvUsage'],
  ['llamacpp:requests_processing', 'running'],
  ['llamacpp:requests_deferred', 'waiting'],
  ['llamacpp:kv_cache_usage_ratio', 'kvUsage'],
])

/**
 * Reads the load from a text in the Prometheus exposition format. Unknown lines are ignored, as are values that are not a finite number
 * from 0. An engine with several workers has a line for each: requests are added, of the KV usage the highest counts.
 */
export const parseEngineMetrics = (text: string): EngineLoad => {
  const load: Reading = { running: 0, waiting: 0, kvUsage: 0 }
  for (const line of text.split('\n')) {
    const name = sampleName.exec(line)?.[0]
    const field = name === undefined ? undefined : fieldsByName.get(name)
    if (name === undefined || field === undefined) continue
    const value = sampleValue(line.slice(name.length))
    if (value === undefined) continue
    load[field] = field === 'kvUsage' ? Math.max(load.kvUsage, Math.min(1, value)) : load[field] + value
  }
  return load
}

const sampleName = /^[a-zA-Z_:][a-zA-Z0-9_:]*/

/** Labels in braces, whose quoted values may hold braces and escaped quotes, then the value, then perhaps a timestamp. */
const afterName = /^(?:[ \t]*\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]*(\+?[0-9][0-9.eE+-]*)(?:[ \t]+-?[0-9]+)?[ \t\r]*$/

const sampleValue = (rest: string): number | undefined => {
  const value = Number(afterName.exec(rest)?.[1] ?? Number.NaN)
  return Number.isFinite(value) ? value : undefined
}
