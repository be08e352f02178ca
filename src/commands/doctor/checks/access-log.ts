import { entryFields } from '../../../accesslog/parse-entry.ts'
import { accessLogSchema } from '../envoy-schema.ts'
import type { Check } from '../finding.ts'
import { doorCheck } from './door-check.ts'

const ticket = 'ticket=%DYNAMIC_METADATA(ctx:turn)%'

const accessLog = doorCheck('access-log', 'routes', ({ manager }) => {
  const bodies = manager.access_log.flatMap(({ typed_config: config }) =>
    config?.['@type'].endsWith('.OpenTelemetryAccessLogConfig')
      ? (accessLogSchema.safeParse(config).data?.body?.string_value ?? [])
      : [],
  )
  const body = bodies.find((text) => text.includes('%DYNAMIC_METADATA(ctx:'))
  const fix = 'access_log of envoy.yaml: envoy.access_loggers.open_telemetry with its body, to the cluster gateway_ends'
  if (body === undefined)
    return {
      severity: 'error',
      problem: 'The HTTP connection manager has no access log that reports the ends of turns to the gateway.',
      why: 'No turn ends before its lease: sessions are not updated, and nothing of them is stored.',
      fix,
    }
  const names = body.split('\x1f').map((field) => field.slice(0, field.indexOf('=')))
  const missing = entryFields.filter((name) => !names.includes(name))
  if (missing.length === 0 && body.endsWith(ticket)) return []
  return {
    severity: 'error',
    problem:
      missing.length > 0
        ? `The access log lacks ${missing.join(', ')}: it is of another version.`
        : 'The ticket is not the last field of the access log.',
    why: 'The gateway cannot read its entries, and no turn ends before its lease.',
    fix,
  }
})

export const accessLogChecks: readonly Check[] = [accessLog]
