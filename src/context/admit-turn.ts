import type { Admission, TriedPod, TurnWork } from '../admission/admission.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { RequestScope } from './context-cache-manager.ts'
import type { ContextEvents } from './context-events.ts'
import { type DecisionTime, startDecision } from './decision-time.ts'
import type { Route } from './route-turn.ts'

/** The client disconnected while the request was decided; the dispatcher makes it the decision `cancelled`. */
export class RequestCancelledError extends Error {
  override readonly name = 'RequestCancelledError'
}

/** A turn at a pod, ready to be forwarded. Either `accept` or `withdraw` is called. */
export interface Attempt<T> {
  /** False: the pod has no room for it. It can go on without, or withdraw and try again. */
  readonly hasRoom: boolean
  /** True: nothing listens at the pod, and no more turns are routed there. Default: false. */
  readonly isPodAway?: boolean
  /** The turn is forwarded. */
  accept(): T
  withdraw(): Promise<void>
}

/** What of a {@link Route} decides over its admission. */
export interface Choice<R> extends Pick<Route, 'pod' | 'policy' | 'objective' | 'input'> {
  readonly pool: { readonly predictor: Pick<TtftPredictor, 'expect'> }
  among(mayChoose: (pod: string) => boolean): R | undefined
}

/** A turn that asks for admission. */
export interface TurnToAdmit<R extends Choice<R>> {
  readonly turnId: string
  readonly tenant: string | undefined
  /** The choice where every pod has room. */
  readonly route: R
  /** Whether it waits where no pod has room. */
  readonly seeksRoom: boolean
  /** How long the load of its KV may take, milliseconds. */
  readonly loadMs: number
}

/**
 * Tries a turn at the pod that is best for it, and at others or later where that has no room. A turn that has waited for
 * too long goes on without room. It holds its resources until its end, or until `attempt` fails.
 * @throws GatewayError `rate_limit_exceeded`, RequestCancelledError
 */
export const admitTurn = async <T, R extends Choice<R>>(
  { admission, events }: { readonly admission: Admission; readonly events: Pick<ContextEvents, 'routed'> },
  turn: TurnToAdmit<R>,
  scope: RequestScope,
  attempt: (route: R, decision: DecisionTime) => Promise<Attempt<T>>,
): Promise<T> => {
  const choice = chooseFor(turn)
  const decision = startDecision(scope, { messageTimeoutMs: admission.messageTimeoutMs, loadMs: turn.loadMs })
  const work: TurnWork = {
    turnId: turn.turnId,
    model: turn.route.input.model,
    objective: turn.route.objective,
    tenant: turn.tenant,
    isShort: choice.isShort,
    holdsOutMs: choice.holdsOutMs,
    pick: choice.pick,
    roomWaitMs: decision.roomLeftMs(),
    get signal() {
      return scope.signal
    },
    onWait: () => decision.extend(),
  }
  let tried: TriedPod | undefined
  try {
    for (;;) {
      const settled = await admission.admit(work, tried)
      if (settled.kind === 'left' || scope.signal.aborted) throw new RequestCancelledError()
      if (settled.kind === 'refused') throw tooManyTurns(admission)
      const route = choice.chosen()
      const made = await attempt(route, decision)
      const mustMove = made.isPodAway === true && route.among((pod) => pod !== route.pod) !== undefined
      if (!mustMove && (made.hasRoom || !settled.hasRoom || !turn.seeksRoom)) {
        admission.roomAt(route.pod)
        events.routed(route.policy, route.pod)
        return made.accept()
      }
      await made.withdraw()
      tried = { pod: route.pod, isShort: isShortAt(route, route.pod) }
    }
  } catch (error) {
    admission.release('prefill', turn.turnId)
    throw error
  } finally {
    decision.end()
  }
}

const isShortAt = ({ pool, input }: Choice<unknown>, pod: string): boolean => pool.predictor.expect(input, pod).isShort

/** The choice of a pod, first among all, then among those that may have room. */
const chooseFor = <R extends Choice<R>>({ route, seeksRoom }: TurnToAdmit<R>) => {
  let chosen: R = route
  let isFirst = true
  const holders = [...(route.input.residentTokens?.keys() ?? [])].filter((pod) => isShortAt(route, pod))
  const elsewhere = route.pool.predictor.expect(route.input, 'another pod')
  const holdsOutMs = seeksRoom && holders.length > 0 && !elsewhere.isShort ? elsewhere.prefillMs : 0

  const pick: TurnWork['pick'] = (mayChoose, waitedMs) => {
    const isAllowed = (pod: string): boolean => mayChoose(pod, () => isShortAt(route, pod))
    // Its KV is in full pods alone: the turn waits there for as long as computing it takes.
    if (waitedMs < holdsOutMs && !holders.some(isAllowed)) return undefined
    const candidate = isFirst && isAllowed(route.pod) ? route : route.among(isAllowed)
    isFirst = false
    const other = candidate ?? (seeksRoom ? undefined : route)
    if (other === undefined) return undefined
    chosen = other
    return other.pod
  }

  const isShort = holders.length > 0 || isShortAt(route, route.pod)
  return { isShort, holdsOutMs, pick, chosen: () => chosen }
}

/** By then every turn that waits now is admitted or refused. */
const tooManyTurns = ({ maxWaitMs }: Admission): GatewayError =>
  new GatewayError('rate_limit_exceeded', {
    headers: { 'retry-after': String(Math.max(1, Math.ceil(maxWaitMs / 1000))) },
  })
