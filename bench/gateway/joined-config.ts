import { parse } from 'yaml'
import { z } from 'zod'

/** A configuration of Envoy, and what its clusters and listeners are told from others by. */
export interface NamedConfig {
  readonly name: string
  /** YAML */
  readonly text: string
}

const part = z.looseObject({ name: z.string() })
const config = z.looseObject({
  static_resources: z.object({ listeners: z.array(part), clusters: z.array(part) }),
})

/**
 * Configurations side by side in one Envoy: the listeners and clusters of all, everything else from the first. In JSON, since what writes YAML leaves
 * words without quotes that Envoy takes for truth values.
 */
export const joinConfigs = (configs: readonly [NamedConfig, ...NamedConfig[]]): string => {
  const parsed = configs.map(({ name, text }) => {
    const whole = config.parse(parse(text))
    const { listeners, clusters } = whole.static_resources
    const apart = (own: string): string => `${own} of ${name}`
    const names = new Map(clusters.map((cluster) => [cluster.name, apart(cluster.name)]))
    return {
      whole,
      listeners: listeners.map((listener) => withClusters({ ...listener, name: apart(listener.name) }, names)),
      clusters: clusters.map((cluster) => withClusters({ ...cluster, name: apart(cluster.name) }, names)),
    }
  })
  return JSON.stringify({
    ...parsed[0]?.whole,
    static_resources: {
      listeners: parsed.flatMap(({ listeners }) => listeners),
      clusters: parsed.flatMap(({ clusters }) => clusters),
    },
  })
}

/** Whatever leads to a cluster leads to the one that has its name now. */
const withClusters = (value: unknown, names: ReadonlyMap<string, string>): unknown => {
  if (Array.isArray(value)) return value.map((item) => withClusters(item, names))
  if (typeof value !== 'object' || value === null) return value
  const isText = '@type' in value && value['@type'] === 'type.googleapis.com/google.protobuf.StringValue'
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      // The filter for turns is told its cluster as a text.
      const namesCluster = key === 'cluster' || key === 'cluster_name' || (isText && key === 'value')
      const isName = namesCluster && typeof member === 'string'
      return [key, isName ? (names.get(member) ?? member) : withClusters(member, names)]
    }),
  )
}
