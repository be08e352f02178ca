import type { WorkKind } from './plan/admission-notation.ts'
import { type AdmissionPlan, placeName } from './plan/plan-admission.ts'
import type { QueuedWork, Vacancies } from './queued-work.ts'
import type { PoolNeed } from './resources.ts'
import { createTurnQueue, type Settlement } from './turn-queue.ts'

/** Who waits with a piece of work. */
export interface WorkClient {
  /** Aborted when the client disconnects. It is read only when the work has to wait. */
  readonly signal: AbortSignal
  /** Called before the work waits. Default: nothing. */
  readonly onWait?: (() => void) | undefined
}

/** A turn that is about to be forwarded. */
export interface TurnWork extends WorkClient {
  readonly turnId: string
  /** Undefined: unknown, and only the requirements of any model apply. */
  readonly model: string | undefined
  /** The InferenceObjective that the request names. Default: none. */
  readonly objective?: string | undefined
  /** Undefined: that of requests without a session. */
  readonly tenant: string | undefined
  /** Whether most of the prompt's KV is in a pod, or can be loaded: a hit, which goes before other turns. */
  readonly isShort: boolean
  /** The turn's pod among those that it may choose; undefined: none is worth it now. `waitedMs`: since its arrival. */
  pick(mayChoose: Vacancies['hasRoom'], waitedMs: number): string | undefined
  /** How long it waits for room at a pod at most, milliseconds. */
  readonly roomWaitMs: number
  /** For so long `pick` may leave room to others, milliseconds from its arrival. Default: it never does. */
  readonly holdsOutMs?: number
}

/** The load of a turn's KV. */
export interface LoadWork extends WorkClient {
  readonly turnId: string
  readonly model: string | undefined
  readonly pod: string
  readonly waitMs: number
}

/** A pod where a turn was admitted and found no room. */
export interface TriedPod {
  readonly pod: string
  readonly isShort: boolean
}

/** How much of a resource is in use; of a global one `pod` is undefined. */
export interface ResourceUsage {
  readonly resource: string
  readonly pod: string | undefined
  readonly inUse: number
  readonly count: number
}

/**
 * Admission control of one gateway process: turns wait, in one queue, for room at a pod and for the named resources that
 * they require. It knows nothing of what other processes admit; that a pod has no room shows when a turn tries.
 */
export interface Admission {
  /** How long a turn waits for resources at most, milliseconds. */
  readonly maxWaitMs: number
  /** How long Envoy waits for a decision at most, milliseconds. */
  readonly messageTimeoutMs: number
  /** Whether any work requires resources. */
  readonly holdsResources: boolean
  /** Admits a turn to a pod, at once or later. `tried`: it was admitted there and comes back, at its place in the order. */
  admit(turn: TurnWork, tried?: TriedPod): Settlement | Promise<Settlement>
  /** Admits a load. */
  admitLoad(load: LoadWork): Settlement | Promise<Settlement>
  /** Releases what the work of a turn holds. Unknown work is ignored: another process may have admitted it. */
  release(kind: WorkKind, turnId: string): void
  /** There is room at the pod, or there may be: a turn released its slot. */
  roomAt(pod: string): void
  /** Turns and loads that wait. */
  waiting(): number
  /** How much of every resource is in use, at each of the pods. */
  usage(pods: readonly string[]): readonly ResourceUsage[]
  /** Removes all waiting work (`left`) and stops the timer. */
  close(): void
}

/** Calls back once, after so many milliseconds. The result prevents that. */
export type StartTimer = (callback: () => void, delayMs: number) => () => void

const startTimeout: StartTimer = (callback, delayMs) => {
  const timeout = setTimeout(callback, delayMs)
  return () => clearTimeout(timeout)
}

/** `nowMs` is a monotonic clock. */
export const createAdmission = (options: {
  readonly plan: AdmissionPlan
  /** It and `maxWaitMs` are read whenever they count. */
  readonly maxWaiting: number
  readonly maxWaitMs: number
  readonly messageTimeoutMs: number
  /** How long a turn holds its resources when its end is not reported, milliseconds. */
  readonly leaseMs: number
  readonly nowMs: () => number
  /** A timer of the same clock. Default: `setTimeout`. */
  readonly startTimer?: StartTimer
  /** For metrics and the log. */
  readonly events: {
    /** Work that waited, or that requires resources, was settled after `waitedMs`; 0: at once. */
    settled(kind: WorkKind, settlement: Settlement, waitedMs: number): void
    /** The end of the work was not reported: its lease expired, and its resources are free. */
    leaseExpired(kind: WorkKind): void
  }
}): Admission => {
  const { plan, nowMs, events, startTimer = startTimeout } = options
  const isGlobal = new Set(plan.resources.filter((resource) => resource.isGlobal).map(({ name }) => name))
  const pending = new Map<string, (settlement: Settlement) => void>()
  const works = new WeakMap<TurnWork, QueuedWork>()
  let stopTimer = (): void => {}
  let dueMs = Number.POSITIVE_INFINITY

  const queue = createTurnQueue({
    ...options,
    maxWaiting: () => options.maxWaiting,
    observer: {
      settled: (id, settlement) => pending.get(id)?.(settlement),
      leaseExpired: (id) => events.leaseExpired(kindOf(id)),
    },
  })

  /** One timer, for the next deadline, look or lease. */
  const setTimer = (): void => {
    const nextMs = queue.nextTickMs() ?? Number.POSITIVE_INFINITY
    if (nextMs === dueMs) return
    stopTimer()
    dueMs = nextMs
    if (nextMs === Number.POSITIVE_INFINITY) return
    stopTimer = startTimer(
      () => {
        dueMs = Number.POSITIVE_INFINITY
        queue.tick()
        setTimer()
      },
      Math.max(1, Math.ceil(nextMs - nowMs())),
    )
  }

  const needsAt = (pod: string, kind: WorkKind, model: string | undefined): readonly PoolNeed[] =>
    plan.needsOf(kind, model).map(({ resource, count }) => ({
      pool: placeName(resource, isGlobal.has(resource) ? undefined : pod),
      count,
      capacity: plan.countOf(resource, pod),
    }))

  /** Prefers pods whose resources are free; where none are, the turn waits for those of the pod that it likes best. */
  const workOf = (turn: TurnWork): QueuedWork => {
    const { turnId, model, objective, tenant = '', isShort, roomWaitMs, holdsOutMs = 0 } = turn
    const arrivedMs = nowMs()
    const requires = plan.needsOf('prefill', model).length > 0
    return {
      id: idOf('prefill', turnId),
      priority: plan.priorityOf(model, objective),
      tenant,
      isShort,
      arrivedMs,
      resourcesWaitMs: options.maxWaitMs,
      roomWaitMs,
      holdsOutUntilMs: arrivedMs + holdsOutMs,
      place: (vacancies) => {
        const waitedMs = nowMs() - arrivedMs
        const hasRoom: Vacancies['hasRoom'] = (pod, short) => vacancies.hasRoom(pod, short)
        const isFree: Vacancies['hasRoom'] = (pod, short) =>
          hasRoom(pod, short) && vacancies.fits(needsAt(pod, 'prefill', model))
        const pod = (requires ? turn.pick(isFree, waitedMs) : undefined) ?? turn.pick(hasRoom, waitedMs)
        return pod === undefined ? undefined : { pod, needs: requires ? needsAt(pod, 'prefill', model) : noNeeds }
      },
    }
  }

  const wait = (kind: WorkKind, { id }: QueuedWork, { signal, onWait }: WorkClient): Promise<Settlement> => {
    const startedMs = nowMs()
    onWait?.()
    return new Promise((resolve) => {
      const leave = (): void => {
        queue.leave(id)
        setTimer()
      }
      pending.set(id, (settlement) => {
        pending.delete(id)
        signal.removeEventListener('abort', leave)
        events.settled(kind, settlement, nowMs() - startedMs)
        resolve(settlement)
      })
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
      setTimer()
    })
  }

  return {
    get maxWaitMs() {
      return options.maxWaitMs
    },
    messageTimeoutMs: options.messageTimeoutMs,
    holdsResources: plan.resources.length > 0,
    admit: (turn, tried) => {
      const work = works.get(turn) ?? workOf(turn)
      works.set(turn, work)
      const answer = tried === undefined ? queue.request(work) : queue.noRoom(work, tried.pod, tried.isShort)
      if (answer === 'waiting') return wait('prefill', work, turn)
      // A turn that tried before was counted then.
      const isCounted = tried === undefined ? plan.needsOf('prefill', turn.model).length > 0 : !isWithRoom(answer)
      if (isCounted) events.settled('prefill', answer, 0)
      return answer
    },
    admitLoad: (load) => {
      const { turnId, model, pod, waitMs } = load
      const needs = needsAt(pod, 'load', model)
      if (needs.length === 0) return { kind: 'admitted', pod, hasRoom: true }
      const work: QueuedWork = {
        id: idOf('load', turnId),
        priority: plan.priorityOf(model),
        tenant: '',
        isShort: true,
        arrivedMs: nowMs(),
        resourcesWaitMs: waitMs,
        roomWaitMs: waitMs,
        place: () => ({ pod: undefined, needs }),
      }
      const answer = queue.request(work)
      if (answer === 'waiting') return wait('load', work, load)
      events.settled('load', answer, 0)
      return answer
    },
    release: (kind, turnId) => {
      queue.release(idOf(kind, turnId))
      setTimer()
    },
    roomAt: (pod) => {
      queue.roomAt(pod)
      setTimer()
    },
    waiting: () => queue.waiting(),
    usage: (pods) => {
      queue.tick()
      return plan.resources.flatMap(({ name }) =>
        (isGlobal.has(name) ? [undefined] : pods).map((pod) => ({
          resource: name,
          pod,
          inUse: queue.inUse(placeName(name, pod)),
          count: plan.countOf(name, pod ?? ''),
        })),
      )
    },
    close: () => {
      for (const id of pending.keys()) queue.leave(id)
      setTimer()
    },
  }
}

const noNeeds: readonly PoolNeed[] = []

const isWithRoom = (settlement: Settlement): boolean => settlement.kind === 'admitted' && settlement.hasRoom

const idOf = (kind: WorkKind, turnId: string): string => `${kind}:${turnId}`

const kindOf = (id: string): WorkKind => (id.startsWith('load:') ? 'load' : 'prefill')
