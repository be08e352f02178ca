/** The load that an engine reports; a number is 0 where the engine reports only others. */
export interface EngineLoad {
  /** Requests. */
  readonly running: number
  readonly waiting: number
  /** Share of its KV memory in use, 0 to 1. */
  readonly kvUsage: number
  /** LoRA adapters with running or waiting requests. Default: the engine does not report them. */
  readonly activeAdapters?: ReadonlySet<string> | undefined
}

const noLoad = { running: 0, waiting: 0, kvUsage: 0 }

/** Prometheus sample name → the field it is read into. vLLM's names, then llama-server's. */
const fieldsByName: ReadonlyMap<string, keyof typeof noLoad> = new Map([
  ['vllm:num_requests_running', 'running'],
  ['vllm:num_requests_waiting', 'waiting'],
  ['vllm:kv_cache_usage_perc', 'kvUsage'],
  ['llamacpp:requests_processing', 'running'],
  ['llamacpp:requests_deferred', 'waiting'],
  ['llamacpp:kv_cache_usage_ratio', 'kvUsage'],
])

/** One series for each set of adapters that vLLM has met, in a label; the value is the time it was last met. */
const adaptersName = 'vllm:lora_requests_info'

/** Whether a line begins with one of these names. */
const isOfLoad = (line: string): boolean => {
  const name = line.slice(0, line.search(/[ \t{]/))
  return fieldsByName.has(name) || name === adaptersName
}

/** Name, labels (quoted, with braces and escaped quotes or not), a value that is not negative, perhaps a timestamp. */
const sample =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:[ \t]*\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]*(\+?[0-9][0-9.eE+-]*)(?:[ \t]+-?[0-9]+)?[ \t\r]*$/

/**
 * Reads the load from the Prometheus exposition format. Unknown lines are ignored, as are values that are not finite
 * numbers from 0. An engine with several workers has a line for each: requests are added, the highest KV usage counts.
 * Undefined: the text says nothing of the load.
 */
export const parseEngineMetrics = (text: string): EngineLoad | undefined => {
  const load = { ...noLoad }
  let isReported = false
  let adapters: { readonly metAt: number; readonly names: ReadonlySet<string> } | undefined
  for (const line of text.split('\n')) {
    // Most lines are of histograms: to read them all takes a gateway of 1,000 pods a processor.
    if (!isOfLoad(line)) continue
    const [, name = '', labels = '', digits] = sample.exec(line) ?? []
    const field = fieldsByName.get(name)
    const value = Number(digits)
    if (name === adaptersName && value >= (adapters?.metAt ?? 0)) adapters = { metAt: value, names: adaptersIn(labels) }
    if (field === undefined || !Number.isFinite(value)) continue
    isReported = true
    load[field] = field === 'kvUsage' ? Math.max(load.kvUsage, Math.min(1, value)) : load[field] + value
  }
  return isReported ? { ...load, activeAdapters: adapters?.names } : undefined
}

const adaptersIn = (labels: string): ReadonlySet<string> =>
  new Set(
    [...labels.matchAll(/(?:running|waiting)_lora_adapters="([^"]*)"/g)]
      .flatMap(([, names = '']) => names.split(','))
      .filter((name) => name !== ''),
  )
