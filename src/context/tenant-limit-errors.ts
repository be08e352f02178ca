import type { ErrorCode } from '../openai/error-codes.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantLimit } from '../sessions/limits.ts'
import type { Limited } from '../sessions/session-store.ts'

const codes = {
  sessions: 'tenant_session_limit',
  'stored-bytes': 'tenant_storage_limit',
  turns: 'tenant_turn_limit',
} as const satisfies Record<TenantLimit, ErrorCode>

/** Only a turn ends by itself so soon that a client had better try again. */
const notSoon = { 'x-should-retry': 'false', 'retry-after': '60' }

/** The refusal of what a tenant's limit forbids. */
export const limitError = ({ limit }: Limited): GatewayError =>
  new GatewayError(codes[limit], limit === 'turns' ? {} : { headers: notSoon })
