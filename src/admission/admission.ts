import type { WorkKind } from './plan/admission-notation.ts'
import { type AdmissionPlan, placeName } from './plan/plan-admission.ts'
import { createResourceQueue, type PoolNeed, type RefusalReason, type Settlement } from './resource-queue.ts'

/** A piece of work of a turn that may need resources. */
export interface AdmissionWork {
  readonly kind: WorkKind
  readonly turnId: string
  /** Undefined: unknown, and only the requirements of any model apply. */
  readonly model: string | undefined
  readonly pod: string
  /** The InferenceObjective that the request names. Default: none. */
  readonly objective?: string | undefined
}

export type AdmissionAnswer =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'waiting'; readonly settled: Promise<Settlement> }

export type Admission = ReturnType<typeof createAdmission>

/**
 * Resource-based admission control of one gateway process: work starts when the named resources it requires are free,
 * in the order of priority and age. It knows nothing of what other processes admit. `nowMs` is a monotonic clock.
 */
export const createAdmission = (options: {
  readonly plan: AdmissionPlan
  readonly maxWaiting: number
  readonly maxWaitMs: number
  /** How long a turn holds its resources when its end is not reported, milliseconds. */
  readonly leaseMs: number
  readonly nowMs: () => number
  /** For metrics and the log. */
  readonly events: {
    /** Work that needs resources stopped waiting for them; `waitedMs` is 0 if it did not wait. */
    settled(kind: WorkKind, settlement: Settlement, waitedMs: number): void
    /** The end of the work was not reported: its lease expired, and its resources are free. */
    leaseExpired(kind: WorkKind): void
  }
}) => {
  const { plan, nowMs, events } = options
  const isGlobal = new Set(plan.resources.filter((resource) => resource.isGlobal).map(({ name }) => name))
  const pending = new Map<string, (settlement: Settlement) => void>()
  let timer: NodeJS.Timeout | undefined
  let dueMs = Number.POSITIVE_INFINITY

  const queue = createResourceQueue({
    ...options,
    observer: {
      settled: (id, settlement) => pending.get(id)?.(settlement),
      leaseExpired: (id) => events.leaseExpired(kindOf(id)),
    },
  })

  /** One timer, for the next deadline or lease. */
  const setTimer = (): void => {
    const nextMs = queue.nextTickMs() ?? Number.POSITIVE_INFINITY
    if (nextMs === dueMs) return
    clearTimeout(timer)
    dueMs = nextMs
    if (nextMs === Number.POSITIVE_INFINITY) return
    timer = setTimeout(
      () => {
        dueMs = Number.POSITIVE_INFINITY
        queue.tick()
        setTimer()
      },
      Math.max(1, Math.ceil(nextMs - nowMs())),
    )
  }

  const poolsOf = ({ kind, model, pod }: AdmissionWork): readonly PoolNeed[] =>
    plan.needsOf(kind, model).map(({ resource, count }) => ({
      pool: placeName(resource, isGlobal.has(resource) ? undefined : pod),
      count,
      capacity: plan.countOf(resource, pod),
    }))

  const wait = (work: AdmissionWork, signal: AbortSignal): Promise<Settlement> => {
    const id = idOf(work.kind, work.turnId)
    const startedMs = nowMs()
    return new Promise((resolve) => {
      const leave = (): void => {
        queue.leave(id)
        setTimer()
      }
      pending.set(id, (settlement) => {
        pending.delete(id)
        signal.removeEventListener('abort', leave)
        events.settled(work.kind, settlement, nowMs() - startedMs)
        resolve(settlement)
      })
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
      setTimer()
    })
  }

  return {
    /** How long a turn waits at most, milliseconds. */
    maxWaitMs: options.maxWaitMs,
    /**
     * Requests all that the work requires. Work that waits leaves the queue when the client's signal aborts; the signal
     * is read only when the work has to wait.
     */
    request: (
      work: AdmissionWork,
      { waitMs, client }: { readonly waitMs: number; readonly client: { readonly signal: AbortSignal } },
    ): AdmissionAnswer => {
      const needs = poolsOf(work)
      if (needs.length === 0) return { kind: 'admitted' }
      const id = idOf(work.kind, work.turnId)
      const answer = queue.request({ id, priority: plan.priorityOf(work.model, work.objective), needs, waitMs })
      switch (answer) {
        case 'admitted':
          events.settled(work.kind, { kind: 'admitted' }, 0)
          return { kind: 'admitted' }
        case 'refused':
          events.settled(work.kind, { kind: 'refused', reason: 'full' }, 0)
          return { kind: 'refused', reason: 'full' }
        case 'waiting':
          return { kind: 'waiting', settled: wait(work, client.signal) }
      }
    },
    /** Releases what the work of a turn holds. Unknown work is ignored: another process may have admitted it. */
    release: (kind: WorkKind, turnId: string): void => {
      queue.release(idOf(kind, turnId))
      setTimer()
    },
    waiting: () => queue.waiting(),
    /** How much of every resource is in use, at each of the pods; of a global one `pod` is undefined. */
    usage: (pods: readonly string[]) => {
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
    /** Removes all waiting work (`left`) and stops the timer. */
    close: (): void => {
      for (const id of pending.keys()) queue.leave(id)
      setTimer()
    },
  }
}

const idOf = (kind: WorkKind, turnId: string): string => `${kind}:${turnId}`

const kindOf = (id: string): WorkKind => (id.startsWith('load:') ? 'load' : 'prefill')
