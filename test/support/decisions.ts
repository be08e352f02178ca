import type { Decision, ForwardDecision } from '../../src/context/context-cache-manager.ts'
import { createTickets, type TurnTicket } from '../../src/context/turn-ticket.ts'
import { type GatewayError, toErrorResponse } from '../../src/openai/gateway-error.ts'

/** The decision as a turn that goes to an engine; throws when it is none. */
export const forwarded = (decision: Decision): ForwardDecision => {
  if (decision.kind !== 'forward') throw new Error(`not forwarded: ${describeDecision(decision)}`)
  return decision
}

/** The error that a decision rejects with; throws when it does not. */
export const rejection = (decision: Decision): GatewayError => {
  if (decision.kind !== 'reject') throw new Error(`not rejected: ${describeDecision(decision)}`)
  return decision.error
}

/** The body of an answer by the gateway; throws when it gives none. */
export const answerBody = (decision: Decision): unknown => {
  if (decision.kind !== 'response') throw new Error(`not answered: ${describeDecision(decision)}`)
  return decision.body
}

/** `x-context-cache` of the turn's response. */
export const cacheStatusOf = ({ responseHeaders }: ForwardDecision): string | undefined =>
  responseHeaders['x-context-cache']

/** The session's id as its client receives it. */
export const sessionIdOf = ({ responseHeaders }: ForwardDecision): string => responseHeaders['x-session-id'] ?? ''

/** The tenant secret of gateways under test. */
export const tenantSecret = 'a secret that is long enough for a gateway'

export const tickets = createTickets(tenantSecret)

/** What Envoy brings back at the end of the turn. */
export const ticketOf = (forward: ForwardDecision): TurnTicket => {
  const ticket = tickets.decode(forward.ticket ?? '')
  if (ticket === undefined) throw new Error('the turn has no ticket')
  return ticket
}

/** Everything a client could tell one decision from another by: all of it, without the turn's own random name. */
export const visibleOf = (decision: Decision): unknown => {
  switch (decision.kind) {
    case 'forward':
      return { ...decision, ticket: { ...ticketOf(decision), turnId: 'any' } }
    case 'reject':
      return toErrorResponse(decision.error)
    case 'passthrough':
    case 'response':
    case 'cached-response':
    case 'cancelled':
      return decision
  }
}

const describeDecision = (decision: Decision): string =>
  decision.kind === 'reject' ? `${decision.error.code}: ${decision.error.message}` : JSON.stringify(decision)
