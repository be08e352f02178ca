import { within } from '../async/deadline.ts'
import type { Slices } from '../async/slices.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { type AnswerRewriter, createAnswerRewriter, type HeldBytes } from '../responses/answer-rewriter.ts'
import { expandBody } from '../responses/expand-body.ts'
import type { AppendOutcome, Chain, Continued, FinishedTurn, ResponseHistory } from '../responses/response-history.ts'
import { type ResponsesTurn, readResponsesTurn } from '../responses/responses-turn.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { Decision, GatewayRequest, HeadersDecision, RequestScope } from './context-cache-manager.ts'
import type { DecideChain, DecideChainSettings } from './decide-chain.ts'
import { createEngineTurns, type EngineTurn } from './engine-turn.ts'
import type { Pools } from './pools.ts'
import { checkSpliceable, parseTtlHeader, type TtlBounds, turnIdFor } from './request-headers.ts'
import type { Tenants } from './tenant.ts'
import { createTruncation } from './truncation.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** What keeps the responses of `POST /v1/responses`. */
export interface KeptResponsesParts {
  readonly history: ResponseHistory
  /** How long a response is kept, in seconds, where its request does not say. */
  readonly ttlSeconds: number
  /** Longest request with its history, and longest answer, bytes. */
  readonly maxBodyBytes: number
  readonly memory: HeldBytes
  /** What became of an answer that was to be kept, once for each. Must not throw. */
  readonly onKept: (outcome: KeptOutcome, error?: unknown) => void
}

export type KeptOutcome =
  | Exclude<AppendOutcome['kind'], 'limited'>
  | 'item_bytes'
  | 'conversation_bytes'
  | 'tenant_bytes'
  /** The store failed, or took too long. */
  | 'unavailable'
  /** There was no room for one more under way. */
  | 'no_memory'
  /** The answer is an error, did not complete, or has a form that is not kept. */
  | 'no_answer'

export interface KeptResponsesSettings extends TtlBounds, DecideChainSettings {
  /** How long a turn holds its conversation, unless it ends before. */
  readonly leaseMs: number
}

/** In the answer to a turn with `truncation: auto`: how many of the oldest items were left out. */
const truncatedHeader = 'x-context-truncated-items'

/** The end of an answer waits no longer than this for the store: Envoy gives a reply two seconds. */
const keepTimeoutMs = 1500

/**
 * Turns of `POST /v1/responses` whose engine keeps nothing: the history goes in front of the new items, and the answer is
 * kept when it is complete. `decisions` are those on a request that asks for neither. Undefined: Envoy does not send the body.
 * What it returns rejects with GatewayError.
 */
export const createKeptResponses = (
  parts: KeptResponsesParts & {
    readonly pools: Pick<Pools, 'forModel'>
    readonly tenants: Tenants
    readonly slices: Slices
    readonly decideChain: DecideChain
  },
  settings: KeptResponsesSettings,
) => {
  const { history, memory, slices } = parts
  const truncate = createTruncation(parts, settings)
  const engines = createEngineTurns(parts)

  /** While secrets are rotated, a chain may be of the tenant by the other one. */
  const open = async (
    request: GatewayRequest,
    tenant: TenantKey,
    continued: Continued,
  ): Promise<{ readonly owner: TenantKey; readonly chain: Chain }> => {
    const openAs = (owner: TenantKey) =>
      history.open({ tenant: owner, continued }).catch((cause: unknown) => {
        throw new GatewayError('session_store_unavailable', { cause })
      })
    const own = await openAs(tenant)
    const former = own.kind === 'unknown' ? parts.tenants.formerTenantOf(request) : undefined
    const outcome = former === undefined ? own : await openAs(former)
    switch (outcome.kind) {
      case 'found':
        return { owner: former ?? tenant, chain: outcome.chain }
      case 'unknown':
        throw notFound(continued)
      case 'locked':
        throw new GatewayError('conversation_locked', { headers: { 'x-should-retry': 'true', 'retry-after': '1' } })
    }
  }

  /** No tenant, no history: an engine answers what asks for none. */
  const tenantOf = (request: GatewayRequest, { continued }: ResponsesTurn): TenantKey | undefined => {
    try {
      return parts.tenants.tenantOf(request)
    } catch (error) {
      if (continued === undefined && error instanceof GatewayError) return undefined
      throw error
    }
  }

  const rewriterOf = (turn: OpenTurn): AnswerRewriter => {
    const { tenant, after, items, model, bytes, asked } = turn
    // Without room for one more, the answer passes, and says that it is not kept.
    const hasRoom = asked.store && memory.heldBytes + bytes <= memory.maxBytes
    let outcome: KeptOutcome = hasRoom ? 'no_answer' : 'no_memory'
    let fault: unknown
    const keep = async ({ id, response }: { readonly id: string; readonly response: string }): Promise<boolean> => {
      const inputItems = items.map(String)
      const finished = { tenant, after, inputItems, model, responseId: id, response, ttlSeconds: turn.ttlSeconds }
      try {
        const appended = await within(keepTimeoutMs, history.append(finished))
        outcome = appended === undefined ? 'unavailable' : outcomeOf(appended)
      } catch (error) {
        ;[outcome, fault] = ['unavailable', error]
      }
      return outcome === 'stored'
    }
    const heldBytes = hasRoom ? bytes : 0
    memory.heldBytes += heldBytes
    const rewriter = createAnswerRewriter({
      maxJsonDepth: settings.maxJsonDepth,
      maxJsonKeys: settings.maxJsonKeys,
      asked: { ...asked, store: hasRoom },
      keep,
      maxHeldBytes: parts.maxBodyBytes,
      memory,
      slices,
    })
    return {
      ...rewriter,
      end: () => {
        rewriter.end()
        memory.heldBytes -= heldBytes
        if (asked.store) parts.onKept(outcome, fault)
        release(turn)
      },
    }
  }

  /** A lock that is not released in this way ends by itself. */
  const release = ({ tenant, after }: Pick<OpenTurn, 'tenant' | 'after'>): void => {
    if (after.kind !== 'conversation') return
    history.release({ tenant, conversationId: after.id, turnId: after.turnId }).catch(() => {})
  }

  const decideOpen = async (
    request: GatewayRequest,
    { body, read, turn, chain }: { body: Buffer; read: ResponsesTurn; turn: OpenTurn; chain: Chain },
    scope: RequestScope,
  ): Promise<Decision<TurnTicket>> => {
    const { maxBodyBytes: maxBytes } = parts
    try {
      const expanded = await slices.run(expandBody(body, read, { history: chain.items, maxBytes }), scope.signal)
      const engineTurn = await engines.turnOf(read.model, expanded, scope.signal)
      scope.releaseBody()
      const decision = await parts.decideChain(
        request,
        {
          api: engineTurn.api,
          body: engineTurn.body,
          asked: body,
          root: chain.root,
          isContinued: chain.items.length > 0,
        },
        scope,
      )
      const { leftOut = 0 } = turn.asked
      if (decision.kind === 'passthrough') return engineTurn.decided(decision, rewriterOf(turn))
      if (decision.kind === 'forward') {
        const told = leftOut === 0 ? {} : { [truncatedHeader]: String(leftOut) }
        const responseHeaders = { ...decision.responseHeaders, ...told }
        return engineTurn.decided({ ...decision, responseHeaders }, rewriterOf(turn))
      }
      release(turn)
      return decision
    } catch (error) {
      release(turn)
      throw error
    }
  }

  const decideAsChat = async (turn: EngineTurn, { asChat }: Decisions, scope: RequestScope) => {
    scope.releaseBody()
    const decision = await onBody(await asChat(scope), turn.body, scope)
    return decision.kind === 'forward' || decision.kind === 'passthrough' ? turn.decided(decision) : decision
  }

  const decide = async (
    request: GatewayRequest,
    body: Buffer,
    { scope, ...decisions }: Decisions & { readonly scope: RequestScope },
  ): Promise<Decision<TurnTicket>> => {
    const read = await slices.run(readResponsesTurn(body, settings), scope.signal)
    const tenant = read.keeps || read.continued !== undefined ? tenantOf(request, read) : undefined
    if (tenant === undefined) {
      if (!engines.translates(read.model)) return onBody(await decisions.asUsual(scope), body, scope)
      return decideAsChat(await engines.turnOf(read.model, body, scope.signal), decisions, scope)
    }
    const ttlSeconds = parseTtlHeader(request, settings) ?? parts.ttlSeconds
    const { keeps, items, model } = read
    const common = { items, model, bytes: body.length, ttlSeconds }
    const asked = { previousResponseId: undefined, conversationId: undefined, store: keeps }
    if (read.continued === undefined) {
      const chain = { root: history.newRoot(), items: [], bytes: 0 }
      const turn = { ...common, tenant, asked, after: { kind: 'first', root: chain.root } } as const
      return decideOpen(request, { body, read, turn, chain }, scope)
    }
    const { kind, id } = read.continued
    const turnId = turnIdFor(request)
    const continued: Continued = kind === 'response' ? { kind, id } : { kind, id, turnId, lockMs: settings.leaseMs }
    const { owner, chain: whole } = await open(request, tenant, continued)
    const leftOut = await truncate(owner, read, whole).catch(() => 0)
    const chain = { ...whole, items: whole.items.slice(leftOut) }
    const [previousResponseId, conversationId] = kind === 'response' ? [id, undefined] : [undefined, id]
    const turn = {
      ...common,
      tenant: owner,
      asked: { ...asked, previousResponseId, conversationId, leftOut },
      after: kind === 'response' ? { kind, id } : { kind, id, turnId },
    } as const
    return decideOpen(request, { body, read, turn, chain }, scope)
  }

  return (request: GatewayRequest, decisions: Decisions): HeadersDecision<TurnTicket> | undefined => {
    if (request.method !== 'POST' || request.endOfStream || !request.bodyReadable) return undefined
    checkSpliceable(request)
    return { kind: 'need-body', decide: (body, scope) => decide(request, body, { ...decisions, scope }) }
  }
}

/** Decides on a request as if no responses were kept. */
type DecideAsUsual = (scope: RequestScope) => Promise<HeadersDecision<TurnTicket>>

interface Decisions {
  readonly asUsual: DecideAsUsual
  /** As if it had come to /v1/chat/completions. */
  readonly asChat: DecideAsUsual
}

const onBody = async (
  decision: HeadersDecision<TurnTicket>,
  body: Buffer,
  scope: RequestScope,
): Promise<Decision<TurnTicket>> => (decision.kind === 'need-body' ? decision.decide(body, scope) : decision)

/** A turn that is to be kept when its answer is complete. */
interface OpenTurn extends Pick<FinishedTurn, 'tenant' | 'after' | 'model' | 'ttlSeconds'> {
  /** Its new items; they retain the request's body, which has so many bytes. */
  readonly items: readonly Buffer[]
  readonly bytes: number
  readonly asked: Parameters<typeof createAnswerRewriter>[0]['asked']
}

const outcomeOf = (appended: AppendOutcome): KeptOutcome =>
  appended.kind === 'limited' ? limits[appended.limit] : appended.kind

const limits = {
  'item-bytes': 'item_bytes',
  'conversation-bytes': 'conversation_bytes',
  'tenant-bytes': 'tenant_bytes',
} as const

const notFound = ({ kind, id }: Continued): GatewayError => {
  // An id of any length may be sent.
  const shown = id.slice(0, 100)
  return kind === 'response'
    ? new GatewayError('previous_response_not_found', {
        param: 'previous_response_id',
        message: `Previous response with id '${shown}' not found.`,
      })
    : new GatewayError('conversation_not_found', {
        param: 'conversation',
        message: `Conversation with id '${shown}' not found.`,
      })
}
