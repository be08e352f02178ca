import type { InferenceApi } from '../openai/inference-api.ts'
import { ClientLeftError } from './begin-turn.ts'
import type { Decision, GatewayRequest } from './context-cache-manager.ts'
import type { RequestOutcome, RequestRoute } from './context-events.ts'
import type { RequestPath } from './request-path.ts'

const routeByApi: Readonly<Record<InferenceApi, RequestRoute>> = {
  completions: 'completions',
  chat: 'chat_completions',
  responses: 'responses',
}

/** What a request asks for, for metrics. */
export const requestRouteOf = (request: GatewayRequest, path: RequestPath): RequestRoute => {
  switch (path.kind) {
    case 'inference':
      return request.header('x-session-ttl').length > 0 && request.header('x-session-id').length === 0
        ? 'create'
        : routeByApi[path.api]
    case 'contexts':
      return request.method === 'POST' ? 'create' : request.method === 'GET' ? 'list' : 'other'
    case 'context':
      return managing.get(request.method) ?? 'other'
    case 'other':
      return 'other'
  }
}

const managing: ReadonlyMap<string, RequestRoute> = new Map([
  ['GET', 'get'],
  ['PATCH', 'update'],
  ['DELETE', 'delete'],
])

/** What became of it, for metrics. */
export const requestOutcomeOf = (decision: Decision): RequestOutcome => {
  switch (decision.kind) {
    case 'forward':
      return 'forwarded'
    case 'answer':
    case 'replay':
      return 'answered'
    case 'passthrough':
      return 'passed'
    case 'reject':
      if (decision.error.cause instanceof ClientLeftError) return 'abandoned'
      return decision.error.code === 'internal_error' ? 'failed' : 'rejected'
  }
}
