import { ExportResultCode, parseKeyPairsIntoRecord } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, resourceAttributesEnvDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { ContextEvents } from '../context/context-events.ts'
import type { Pool } from '../context/pools.ts'
import type { TurnTracer } from '../context/turn-tracer.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Logger } from '../telemetry/logger.ts'
import { followPool, followStore } from './follow-ports.ts'
import { createFollower } from './follower.ts'
import { createTurnTracer, followEvents } from './turn-tracer.ts'

/** Spans that wait for their export, some 1 KB each. Beyond, new ones are dropped. */
const maxQueuedSpans = 2_048
const batchSpans = 512
const batchEveryMs = 1_000
const exportTimeoutMs = 5_000

export interface TracingOptions {
  /** URL that takes OTLP over HTTP. */
  readonly url: string
  /** Sent with each export, such as a credential: `name=value`, with commas between them, values percent-encoded. */
  readonly headers: string | undefined
  readonly serviceName: string
  readonly version: string
  /** Share of the traces without a caller's decision that are sampled, 0 to 1. */
  readonly sampleRatio: number
  readonly log: Pick<Logger, 'warn'>
}

/** Traces of the turns, and the parts of a gateway that they follow. */
export interface Tracing {
  readonly tracer: TurnTracer
  /** W3C context of the load or offload that runs, for the engine. Undefined: none does. */
  traceparent(): string | undefined
  followStore<Store extends SessionStore>(store: Store): Store
  followPool(pool: Pool): Pool
  followEvents(events: ContextEvents): ContextEvents
  /** Exports what waits, as far as the receiver takes it. Never rejects. */
  stop(): Promise<void>
}

/** This module alone loads OpenTelemetry, and is loaded where traces are on. */
export const createTracing = (options: TracingOptions): Tracing => {
  const { url, headers, version } = options
  const exporter = new OTLPTraceExporter({
    url,
    headers: parseKeyPairsIntoRecord(headers),
    timeoutMillis: exportTimeoutMs,
  })
  const detected = detectResources({ detectors: [resourceAttributesEnvDetector] })
  const provider = new TracerProvider({
    resource: detected.merge(
      resourceFromAttributes({ 'service.name': options.serviceName, 'service.version': version }),
    ),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sampleRatio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: warnOfFailures(exporter, options.log),
        maxQueueSize: maxQueuedSpans,
        maxExportBatchSize: batchSpans,
        scheduledDelayMillis: batchEveryMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  })
  const follower = createFollower(provider.getTracer('context-cache-gateway', version))
  return {
    tracer: createTurnTracer(follower),
    traceparent: () => {
      const span = follower.current()
      return span?.name === 'load' || span?.name === 'offload' ? span.traceparent : undefined
    },
    followStore: (store) => followStore(store, follower),
    followPool: (pool) => followPool(pool, follower),
    followEvents: (events) => followEvents(events, follower),
    stop: () => provider.shutdown().catch(() => undefined),
  }
}

/** Spans that cannot be exported are dropped, and the operator is told. */
const warnOfFailures = (exporter: SpanExporter, log: Pick<Logger, 'warn'>): SpanExporter => ({
  export: (spans, onResult) =>
    exporter.export(spans, (result) => {
      // The cause is no text field, so that all failures share one line a minute.
      if (result.code !== ExportResultCode.SUCCESS) log.warn('traces could not be exported', { err: result.error })
      onResult({ code: ExportResultCode.SUCCESS })
    }),
  shutdown: () => exporter.shutdown(),
})
