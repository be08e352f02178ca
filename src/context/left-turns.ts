import { hashOfId, SlotMap } from '../collections/slot-map.ts'
import {
  type ContextService,
  type Decision,
  type EndedTurn,
  type GatewayRequest,
  requestKeyHeader,
} from './context-service.ts'
import type { EndTurn } from './end-turn.ts'
import { turnIdOf } from './turn-ticket.ts'

/** More turns than are forwarded before Envoy tells that one of them was left. Those whose end another process was told stay until then. */
const maxTurns = 20_000
const maxLeft = 10_000

/** Ends turns whose clients left before Envoy had read which turn it was. */
export interface LeftTurns extends Pick<ContextService, 'endTurn' | 'clientLeft'> {
  /** Remembers the turn of a request that is about to be forwarded, until it ends. */
  decided(request: Pick<GatewayRequest, 'header'>, decision: Decision): void
}

/**
 * A client may leave in the moment in which its turn is forwarded: Envoy has given the request up and never reads the decision, so that its access
 * log has no ticket to show. It shows the request's key instead, and the turn ends by the ticket that was remembered with it: once, whatever is
 * told of it in whatever order.
 */
export const createLeftTurns = (endTurn: EndTurn): LeftTurns => {
  /** Tickets by the keys of their requests, and those keys by turn. */
  const tickets = new SlotMap<string, string>({ hashOf: hashOfId, maxEntries: maxTurns })
  const keys = new SlotMap<string, string>({ hashOf: hashOfId, maxEntries: maxTurns })
  /** Keys of requests whose decision is still to come, and turns that have ended here. */
  const left = new SlotMap<string, true>({ hashOf: hashOfId, maxEntries: maxLeft })

  const endLeft = (ticket: string): Promise<void> => {
    left.set(turnIdOf(ticket), true)
    return endTurn(leftTurn(ticket))
  }

  return {
    decided: (request, decision) => {
      if (decision.kind !== 'forward' || decision.ticket === undefined) return
      const [key = ''] = request.header(requestKeyHeader)
      if (key === '') return
      if (left.delete(key) === true) {
        void endLeft(decision.ticket)
        return
      }
      tickets.set(key, decision.ticket)
      keys.set(turnIdOf(decision.ticket), key)
    },
    clientLeft: async (key) => {
      const ticket = tickets.delete(key)
      if (ticket === undefined) {
        left.set(key, true)
        return
      }
      keys.delete(turnIdOf(ticket))
      await endLeft(ticket)
    },
    endTurn: (turn) => {
      const turnId = turnIdOf(turn.ticket)
      const key = keys.delete(turnId)
      if (key !== undefined) tickets.delete(key)
      else if (left.has(turnId)) return Promise.resolve()
      return endTurn(turn)
    },
  }
}

const leftTurn = (ticket: string): EndedTurn => ({
  ticket,
  status: 0,
  complete: false,
  clientLeft: true,
  upstreamFailed: false,
  servedBy: undefined,
  usage: undefined,
  firstByteMs: undefined,
})
