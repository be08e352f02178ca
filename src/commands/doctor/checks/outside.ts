import { type Check, checkOf, type Problems } from '../finding.ts'

const reachesGateway = checkOf('reaches-gateway', 'outside', ({ context: { status, code } }): Problems => {
  // A filter in front of the gateway may refuse it.
  if (status === 401 || status === 403) return []
  return {
    severity: 'error',
    problem: `GET /v1/context without a credential gets ${status}${code === undefined ? '' : ` ${code}`} instead of 401.`,
    why:
      status >= 500
        ? 'Envoy does not reach a gateway: contexts are refused, and turns have no session.'
        : 'It does not reach a gateway.',
    fix: 'routes of /v1/context in envoy.yaml, and endpoints of the cluster gateway (listen.extproc)',
  }
})

const largeBodies = checkOf(
  'large-bodies',
  'outside',
  ({ largeBody: { status, bytes } }, { settings }): Problems =>
    status !== 413 || settings.turns.maxBodyBytes < bytes
      ? []
      : {
          severity: 'error',
          problem: `POST /v1/context with ${bytes} bytes gets 413.`,
          why: 'Long prompts are refused, though the gateway would take them.',
          fix: 'virtual host: request_body_buffer_limit: 16777216, and max_request_bytes: 16777216 of the buffer filter',
        },
)

const controlCalls = checkOf('control-paths', 'outside', ({ control }): Problems => {
  const open = control.filter(({ status }) => status < 400)
  if (open.length === 0) return []
  return {
    severity: 'error',
    problem: `Clients reach ${open.map(({ path, status }) => `${path} (${status})`).join(', ')} of the engines.`,
    why: 'Engines serve control calls there without authentication: they read, copy and delete the KV of all tenants.',
    fix: 'only the routes of envoy.yaml; last { match: { prefix: "/" }, direct_response: { status: 404 } }',
  }
})

export const outsideChecks: readonly Check[] = [reachesGateway, largeBodies, controlCalls]
