import { hashOfId, SlotMap } from '../collections/slot-map.ts'
import type { ContextCacheManager, Decision, TurnEnd } from './context-cache-manager.ts'
import type { EndTurn } from './end-turn.ts'
import { decodeTicket, type TurnTicket, turnIdOf } from './turn-ticket.ts'

/** More turns than are under way. Those whose end another process was told stay until then. */
const maxTurns = 20_000
const maxLeft = 10_000

/** Turns that this process forwarded, until they end. */
export interface OpenTurns extends Pick<ContextCacheManager, 'endTurn' | 'clientDisconnected'> {
  /** Remembers the turn of a request that is about to be forwarded. */
  decided(decision: Decision): void
}

/**
 * Ends turns, each once, whatever is told of it in whatever order. A turn that began here ends by the ticket that was remembered, which need not be read
 * again; one that began in another process by what its ticket says.
 *
 * A client may leave in the moment in which its turn is forwarded: Envoy has given the request up and never reads the decision, so that its access log
 * has no ticket to show. It shows the request's key instead, which is the turn's id.
 */
export const createOpenTurns = (endTurn: EndTurn): OpenTurns => {
  const tickets = new SlotMap<string, TurnTicket>({ hashOf: hashOfId, maxEntries: maxTurns })
  /** Turns whose decision is still to come, and those that have ended here. */
  const left = new SlotMap<string, true>({ hashOf: hashOfId, maxEntries: maxLeft })

  const endLeft = (ticket: TurnTicket): Promise<void> => {
    left.set(ticket.turnId, true)
    return endTurn(ticket, clientDisconnected)
  }

  return {
    decided: (decision) => {
      if (decision.kind !== 'forward' || decision.ticket === undefined) return
      const { ticket } = decision
      if (left.delete(ticket.turnId) === true) void endLeft(ticket)
      else tickets.set(ticket.turnId, ticket)
    },
    clientDisconnected: async (turnId) => {
      const ticket = tickets.delete(turnId)
      if (ticket === undefined) left.set(turnId, true)
      else await endLeft(ticket)
    },
    endTurn: (turn) => {
      const turnId = turnIdOf(turn.ticket)
      const known = tickets.delete(turnId)
      if (known === undefined && left.has(turnId)) return Promise.resolve()
      const ticket = known ?? decodeTicket(turn.ticket)
      return ticket === undefined ? Promise.resolve() : endTurn(ticket, turn)
    },
  }
}

const clientDisconnected: TurnEnd = {
  status: 0,
  complete: false,
  clientDisconnected: true,
  upstreamFailed: false,
  servedBy: undefined,
  usage: undefined,
  ttfbMs: undefined,
}
