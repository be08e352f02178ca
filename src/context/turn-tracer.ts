import type { Decision, GatewayRequest } from './context-cache-manager.ts'
import type { RequestOutcome, RequestRoute } from './context-events.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** Follows requests and turns into a system for traces. No call throws. Left out: nothing is followed. */
export interface TurnTracer {
  /** Follows the decision on a request. Undefined: its trace is not sampled. */
  start(request: GatewayRequest): FollowedRequest | undefined
  /** Runs the end of a turn, which this gateway or another one forwarded. Settles as `work` does. */
  end(ticket: TurnTicket, work: () => Promise<void>): Promise<void>
}

/** A request whose trace is sampled. */
export interface FollowedRequest {
  /** Runs a part of the decision: what it calls is followed, too. */
  run<T>(part: () => Promise<T>): Promise<T>
  /** Called once, last. Returns the decision with the trace's context, for the pod and for the end of the turn. */
  decided(decision: Decision<TurnTicket>, facts: DecidedFacts): Decision<TurnTicket>
}

export interface DecidedFacts {
  readonly route: RequestRoute
  readonly outcome: RequestOutcome
  /** Undefined: no engine lists it, or it is not known. */
  readonly model: string | undefined
}
