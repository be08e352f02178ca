import type { EnvoyConfigFile } from '../../playground/envoy-config.ts'
import type { ProcessName } from './process-usage.ts'

/** How Envoy is wired to the gateway: the configuration in use. */
export const wirings = {
  ext_proc: 'envoy.yaml',
  picker: 'deploy/envoy/picker.yaml',
} as const satisfies Readonly<Record<string, EnvoyConfigFile>>
export type Wiring = keyof typeof wirings
export const wiringNames = ['ext_proc', 'picker'] as const satisfies readonly Wiring[]

/**
 * What a gateway behind an Envoy does. `constants`: those of envoy.yaml, without a session. `spliced`: Redis, and a
 * `cache_salt`. `traced`: Redis, and spans of every turn to a receiver that drops them. `kept …`: responses are kept.
 */
export const gatewayKinds = [
  'no session',
  'constants',
  'memory',
  'redis',
  'spliced',
  'traced',
  'kept memory',
  'kept redis',
] as const
export type GatewayKind = (typeof gatewayKinds)[number]

/**
 * Where requests say which session they are of. A client's own name in the body needs an Envoy that looks for it, and
 * `previous_response_id` a response that is kept.
 */
export const sessionPlaces = ['x-session-id', 'session-id', 'body.prompt_cache_key', 'previous_response_id'] as const
export type SessionPlace = (typeof sessionPlaces)[number]

interface CaseParts {
  readonly kind: GatewayKind
  /** Where requests name their session. Default: nowhere, as they have none. */
  readonly idIn?: SessionPlace
  /** Envoy looks for a name in the bodies of requests that have none in their headers. */
  readonly bodyNames?: boolean
  /** Length of what the responses were asked that turns continue. */
  readonly historyBytes?: number
}

/** What a target does. */
export const gatewayCases = {
  'no session': { kind: 'no session' },
  'no session, names read': { kind: 'no session', bodyNames: true },
  constants: { kind: 'constants' },
  memory: { kind: 'memory', idIn: 'x-session-id' },
  'memory by header': { kind: 'memory', idIn: 'session-id' },
  'memory by member': { kind: 'memory', idIn: 'body.prompt_cache_key', bodyNames: true },
  redis: { kind: 'redis', idIn: 'x-session-id' },
  'redis by header': { kind: 'redis', idIn: 'session-id' },
  'redis by member': { kind: 'redis', idIn: 'body.prompt_cache_key', bodyNames: true },
  spliced: { kind: 'spliced', idIn: 'x-session-id' },
  'memory kept': { kind: 'kept memory', idIn: 'x-session-id' },
  'memory continued 2k': { kind: 'kept memory', idIn: 'previous_response_id', historyBytes: 2048 },
  'memory continued 100k': { kind: 'kept memory', idIn: 'previous_response_id', historyBytes: 102_400 },
  'redis continued 2k': { kind: 'kept redis', idIn: 'previous_response_id', historyBytes: 2048 },
  'redis continued 100k': { kind: 'kept redis', idIn: 'previous_response_id', historyBytes: 102_400 },
  'redis traced': { kind: 'traced', idIn: 'x-session-id' },
} as const satisfies Readonly<Record<string, CaseParts>>
export type GatewayCase = keyof typeof gatewayCases

export const gatewayCaseNames = Object.keys(gatewayCases) as readonly GatewayCase[]

export const partsOf = (name: GatewayCase): CaseParts => gatewayCases[name]

/** A picker has no filter that looks for names: the gateway reads the whole body of a turn by a name. */
export const hasCase = (wiring: Wiring, name: GatewayCase): boolean =>
  wiring !== 'picker' || partsOf(name).bodyNames !== true

/** `ext_proc memory` */
export const targetName = (wiring: Wiring, gatewayCase: GatewayCase): string => `${wiring} ${gatewayCase}`

/** One path that requests take through an Envoy of its own. */
export interface Target {
  readonly name: string
  /** `127.0.0.1:8000` */
  readonly address: string
  /** Envoy's admin interface: `127.0.0.1:9901` */
  readonly adminAddress: string
  /** The ids of the sessions to use, or clients' names of them; empty: requests carry no session. */
  readonly ids: readonly string[]
  readonly idIn: SessionPlace | undefined
  /** What every request must carry when it reaches the upstream, so that none bypasses what is measured. */
  readonly arrives: 'plain' | 'marked' | 'spliced'
  /** How long each body is at least that reaches the upstream. */
  readonly historyBytes: number | undefined
  /** Process ids. */
  readonly pids: Readonly<Partial<Record<ProcessName, number>>>
}

/** @throws Error when no target of that name was started */
export const findTarget = (name: string, targets: readonly Target[]): Target => {
  const found = targets.find((target) => target.name === name)
  if (found === undefined) throw new Error(`there is no target ${name}`)
  return found
}
