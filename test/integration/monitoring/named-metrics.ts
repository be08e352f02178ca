import { type MetricDefinition, metricDefinitions, metricPrefix } from '../../../src/telemetry/metric-definitions.ts'

/** A metric as a text in PromQL or Markdown names it. */
export interface NamedMetric {
  /** Without prefix, and without the suffix of a histogram's series. */
  readonly name: string
  readonly suffix: string
  readonly matchers: readonly { readonly label: string; readonly values: readonly string[] }[]
}

/** Labels that Prometheus adds, and the bound of a bucket. */
const ofPrometheus: readonly string[] = ['namespace', 'job', 'instance', 'le']

/** Every metric of the gateway in the text. Names of recording rules, which have colons, are none. */
export const metricsIn = (text: string): readonly NamedMetric[] => {
  const pattern = new RegExp(`(?<![\\w:])${metricPrefix}([a-z_]*[a-z])\\b(?![:*])(?:\\{([^}]*)\\})?`, 'g')
  return [...text.matchAll(pattern)].map(([, full = '', labels = '']) => {
    const [, stem = full, suffix = ''] = /^(.*?)_(bucket|count|sum)$/.exec(full) ?? []
    return {
      name: suffix === '' || full in metricDefinitions ? full : stem,
      suffix: full in metricDefinitions ? '' : suffix,
      matchers: [...labels.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = '', value = '']) => ({
        label,
        values: value.startsWith('$') ? [] : value.split(/\\?\|/),
      })),
    }
  })
}

/** What is wrong with the metrics that a text names. */
export const problemsIn = (text: string): readonly string[] => {
  const named = metricsIn(text)
  const definitions: Readonly<Record<string, MetricDefinition>> = metricDefinitions
  const ofMetrics = named.flatMap(({ name, suffix, matchers }) => {
    const definition = definitions[name]
    if (definition === undefined) return [`${name} does not exist`]
    const isSeries = definition.type === 'histogram' ? suffix !== '' || matchers.length === 0 : suffix === ''
    return [
      ...(isSeries ? [] : [`${name}_${suffix} is no series of a ${definition.type}`]),
      ...matchers.flatMap(({ label, values }) => wrongMatcher(name, definition, label, values)),
    ]
  })
  const known = new Set([...ofPrometheus, 'alertname', ...named.flatMap(({ name }) => labelsOf(definitions[name]))])
  const grouped = [...text.matchAll(/\b(?:by|on)\s*\(([\w, ]*)\)/g)].flatMap(([, labels = '']) => labels.split(/,\s*/))
  const unknown = grouped.filter((label) => label !== '' && !known.has(label))
  return [...ofMetrics, ...unknown.map((label) => `nothing here has the label ${label}`)]
}

const labelsOf = (definition: MetricDefinition | undefined): readonly string[] => Object.keys(definition?.labels ?? {})

const wrongMatcher = (
  name: string,
  { labels }: MetricDefinition,
  label: string,
  values: readonly string[],
): readonly string[] => {
  if (ofPrometheus.includes(label)) return []
  const range = labels[label]
  if (range === undefined) return [`${name} has no label ${label}`]
  // Other labels are bounded by the configuration, and by what is there.
  if (typeof range === 'string') return []
  return values.filter((value) => !range.includes(value)).map((value) => `${name} never has ${label}="${value}"`)
}
