import type { Logger } from 'pino'
import type { EngineMetrics } from '../engine-metrics.ts'
import type { Engine } from '../inference/engine.ts'
import type { ServedModels } from '../served-models.ts'

/** Everything that a request handler of a ready engine works with. */
export interface Service {
  readonly engine: Engine
  readonly models: ServedModels
  readonly metrics: EngineMetrics
  readonly log: Logger
  readonly limits: ServiceLimits
}

/** Limits and defaults of requests. */
export interface ServiceLimits {
  readonly maxBodyBytes: number
  /** Answer tokens for a request that names no limit. */
  readonly defaultMaxTokens: number
  /** Whether every stream ends with its token counts, asked for or not. */
  readonly alwaysSendUsage: boolean
}
