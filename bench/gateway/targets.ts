import type { EnvoyConfigFile } from '../../playground/envoy-config.ts'
import type { ProcessName } from './process-usage.ts'

/** How Envoy is wired to the gateway: the configuration in use. */
export const wirings = {
  ext_proc: 'envoy.yaml',
  picker: 'deploy/envoy/picker.yaml',
} as const satisfies Readonly<Record<string, EnvoyConfigFile>>
export type Wiring = keyof typeof wirings
export const wiringNames = ['ext_proc', 'picker'] as const satisfies readonly Wiring[]

/** What a target does. `constants`: those of envoy.yaml, without a session. `spliced`: Redis, and a `cache_salt`. */
export const gatewayCases = ['no session', 'constants', 'memory', 'redis', 'spliced'] as const
export type GatewayCase = (typeof gatewayCases)[number]

/** `ext_proc memory` */
export const targetName = (wiring: Wiring, gatewayCase: GatewayCase): string => `${wiring} ${gatewayCase}`

/** One path that requests take through an Envoy of its own. */
export interface Target {
  readonly name: string
  /** `127.0.0.1:8000` */
  readonly address: string
  /** Envoy's admin interface: `127.0.0.1:9901` */
  readonly adminAddress: string
  /** The ids of the sessions to use; empty: requests carry no session. */
  readonly ids: readonly string[]
  /** What every request must carry when it reaches the upstream, so that none bypasses what is measured. */
  readonly arrives: 'plain' | 'marked' | 'spliced'
  /** Process ids. */
  readonly pids: Readonly<Partial<Record<ProcessName, number>>>
}

/** @throws Error when no target of that name was started */
export const findTarget = (name: string, targets: readonly Target[]): Target => {
  const found = targets.find((target) => target.name === name)
  if (found === undefined) throw new Error(`there is no target ${name}`)
  return found
}
