/** A way that requests go through an Envoy, with what is behind it. */
export interface Target {
  readonly name: string
  /** `127.0.0.1:8000` */
  readonly address: string
  readonly idsFile: string | undefined
  /** What every request has to be when it reaches the upstream, so that none goes past what is measured. */
  readonly arrives: 'plain' | 'marked' | 'spliced'
  readonly envoyPid: number
  /** The external processor. */
  readonly pluginPid: number | undefined
  readonly redisPid: number | undefined
}

/** A gateway to measure, beside others with another configuration. */
export interface GatewayVariant {
  /** Empty for the gateway as it is by default. */
  readonly name: string
  readonly env: Readonly<Record<string, string>>
}

export interface Upstream {
  readonly addresses: readonly string[]
  readonly pid: number
}

/** The gateway's own targets, before a variant's name is put behind them. */
export const gatewayTargetNames = ['no session', 'memory', 'redis', 'redis, spliced'] as const
export type GatewayTargetName = (typeof gatewayTargetNames)[number]

export const targetName = (name: GatewayTargetName, variant: GatewayVariant): string =>
  variant.name === '' ? name : `${name} [${variant.name}]`

/** The target of a measurement. @throws Error when it was not started */
export const targetOf = (wanted: { readonly target: string }, targets: readonly Target[]): Target => {
  const found = targets.find(({ name }) => name === wanted.target)
  if (found === undefined) throw new Error(`there is no target ${wanted.target}`)
  return found
}
