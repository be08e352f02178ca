/** The load that an engine reports; 0 where it does not report it. */
export interface EngineLoad {
  readonly running: number
  readonly waiting: number
  /** 0 to 1. */
  readonly kvUsage: number
}

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
 * A sample: its name, labels in braces, whose quoted values may hold braces and escaped quotes, the value, and perhaps a timestamp. Values
 * that are negative or no number do not match.
 */
const sample =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:[ \t]*\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]*(\+?[0-9][0-9.eE+-]*)(?:[ \t]+-?[0-9]+)?[ \t\r]*$/

/**
 * Reads the load from a text in the Prometheus exposition format. Unknown lines are ignored, as are values that are not a finite number
 * from 0. An engine with several workers has a line for each: requests are added, of the KV usage the highest counts.
 */
export const parseEngineMetrics = (text: string): EngineLoad => {
  const load = { running: 0, waiting: 0, kvUsage: 0 }
  for (const line of text.split('\n')) {
    const [, name = '', digits] = sample.exec(line) ?? []
    const field = fieldsByName.get(name)
    const value = Number(digits)
    if (field === undefined || !Number.isFinite(value)) continue
    load[field] = field === 'kvUsage' ? Math.max(load.kvUsage, Math.min(1, value)) : load[field] + value
  }
  return load
}
