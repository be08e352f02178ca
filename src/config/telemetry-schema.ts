import { z } from 'zod'
import { decimal, group, httpUrl, otlpHeaders } from '../options/values.ts'

/** The log. */
export const log = group({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least severe level that is logged.'),
})

/** Traces. */
export const traces = group({
  otlpEndpoint: httpUrl.optional().meta({
    description:
      'URL of a receiver of OTLP over HTTP, as `http://collector:4318`; spans go to `/v1/traces` below it. With it, or with `traces.otlpTracesEndpoint`, traces are on.',
    plainEnv: 'OTEL_EXPORTER_OTLP_ENDPOINT',
  }),
  otlpTracesEndpoint: httpUrl.optional().meta({
    description: 'URL that spans go to, as it is. It takes precedence.',
    plainEnv: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  }),
  otlpHeaders: otlpHeaders.optional().meta({
    description: 'Headers of each export, as `authorization=Bearer%20…,x-tenant=…`, values percent-encoded.',
    plainEnv: 'OTEL_EXPORTER_OTLP_HEADERS',
  }),
  serviceName: z.string().min(1).max(255).default('context-cache-gateway').meta({
    description: '`service.name` of the spans.',
    plainEnv: 'OTEL_SERVICE_NAME',
  }),
  sampleRatio: decimal(0, 1).default(1).meta({
    description:
      'Share of the requests without `traceparent` whose turns are traced. A request that has one is traced if its caller traces it.',
    plainEnv: 'OTEL_TRACES_SAMPLER_ARG',
  }),
})
