import type { ClockReading } from './clock-reading.ts'
import type { EngineFacts } from './engine-facts.ts'
import type { EnvoyFacts } from './envoy-facts.ts'
import type { GatewayFacts } from './gateway-facts.ts'
import type { Known } from './known.ts'
import type { OutsideFacts } from './outside-facts.ts'
import type { FullCoverage } from './redis-coverage.ts'
import type { RedisFacts } from './redis-facts.ts'
import type { Settings } from './settings.ts'

/** What `doctor` saw of an installation. */
export interface Facts {
  /** Options of the gateway; where neither a gateway nor a file tells them, their defaults. */
  readonly settings: Settings
  /** Why those that were to be asked did not answer. */
  readonly silent: readonly string[]
  readonly gateway: Known<GatewayFacts>
  readonly envoy: Known<EnvoyFacts>
  readonly outside: Known<OutsideFacts>
  readonly redis: Known<RedisFacts>
  readonly fullCoverage: Known<FullCoverage>
  /** At least one engine. */
  readonly engines: Known<readonly EngineFacts[]>
  readonly clocks: readonly ClockReading[]
  readonly lua: LuaFiles
}

/** The Lua files of this package, and how others are read. */
export interface LuaFiles {
  readonly contextCache: string
  readonly sessionNames: string
  /** The content of a file that Envoy names; undefined: Envoy runs elsewhere, or the file cannot be read. */
  readonly read: (path: string) => string | undefined
}
