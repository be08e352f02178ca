import { setMaxListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { settledWithin } from '../async/deadline.ts'
import type { KvRemoval, RemoveOutcome } from '../kvcache/kv-connector.ts'
import { kvStaleStatus } from '../sessions/limits.ts'
import type { Removal, RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { type ContextEvents, reportFault } from './context-events.ts'
import type { Pools } from './pools.ts'

export interface ReaperSettings {
  /** Time between two sweeps. */
  readonly intervalMs: number
  /** Time between two searches for orphaned KV. */
  readonly orphanIntervalMs: number
  /** Removals that run at once, at most. */
  readonly batchSize: number
  /** A claimed removal that is not finished is due again after this time; it is given up by then, or after 10 s. */
  readonly removalLeaseMs: number
  /** Delay before a removal whose KV is in use is tried again; doubles with every try, up to 30 s. */
  readonly retryDelayMs: number
}

/** Sessions or removals per step: turns are served between two steps, in this process and in the store. */
const maxStepSize = 10
/** Sessions of a step that only reads most of them. */
const recountStepSize = 100
/** For a removal, and for a search for orphans. */
const timeLimitMs = 10_000
const maxRetryDelayMs = 30_000
/** Another connector's KV: nothing changes until an operator configures that connector again. */
const foreignRetryMs = 600_000
/** After this time a sweep claims no more removals: sessions have to expire meanwhile. */
const maxClaimingMs = 5_000
const noAnswer: RemoveOutcome = { kind: 'busy', reason: 'no_answer' }

/**
 * Ends expired sessions, and removes the KV of ended sessions from the store and from every pod, at least once. Every
 * gateway process runs one; the queue gives each removal to one of them at a time.
 */
export interface Reaper {
  /** Sweeps after each interval. */
  start(): void
  /** Resolves when the sweep that runs has ended. */
  stop(): Promise<void>
  /** Sweeps, after the sweep that runs. Resolves when it has ended. */
  sweepAndWait(): Promise<void>
  /** Queues a sweep without waiting for it. */
  triggerSweep(): void
}

/** `nowMs` never goes back. */
export const createReaper = (
  parts: {
    readonly queue: RemovalQueue & Pick<SessionStore, 'dropArtefacts'>
    readonly pools: Pick<Pools, 'remove' | 'sweep' | 'forget'>
    readonly events: ContextEvents
    readonly nowMs: () => number
  },
  settings: ReaperSettings,
): Reaper => {
  const { queue, pools, events } = parts
  const stepSize = Math.min(settings.batchSize, maxStepSize)
  const stopping = new AbortController()
  // Every removal listens to it.
  setMaxListeners(0, stopping.signal)
  /** Removals that run, those that were given up included. */
  const removing = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let queued: Promise<void> | undefined
  let orphansDueAtMs = Number.NEGATIVE_INFINITY

  const expireDue = async (): Promise<void> => {
    for (;;) {
      const { ended, hasMore } = await queue.expireDue(stepSize)
      if (ended > 0) events.sessionsExpired(ended)
      if (!hasMore || stopping.signal.aborted) return
      await setImmediate()
    }
  }

  const evictDue = async (): Promise<void> => {
    while ((await queue.evict(stepSize)) === stepSize && !stopping.signal.aborted) await setImmediate()
  }

  /** To the end of the first round; from then on some sessions at each sweep. */
  const recount = async (): Promise<void> => {
    while ((await queue.recount(recountStepSize)) && !stopping.signal.aborted) await setImmediate()
  }

  const postpone = (removal: Removal): Promise<void> => {
    const delayMs = settings.retryDelayMs * 2 ** Math.min(removal.attempt - 1, 10)
    return queue.retryLater(removal, Math.min(delayMs, maxRetryDelayMs))
  }

  /** Never rejects: a removal that fails is due again when its lease has expired. */
  const remove = async (removal: Removal): Promise<void> => {
    try {
      removing.add(removal.id)
      const work = (signal: AbortSignal) =>
        pools.remove(toKvRemoval(removal), signal).finally(() => removing.delete(removal.id))
      const limitMs = Math.min(timeLimitMs, settings.removalLeaseMs)
      const outcome = await settledWithin(limitMs, work, () => noAnswer, stopping.signal)
      if (outcome.kind === 'busy') {
        await postpone(removal)
        events.removalPostponed(outcome.reason, removal.attempt)
        return
      }
      if (outcome.kind === 'foreign') {
        await queue.retryLater(removal, foreignRetryMs)
        events.removalForeign(removal.attempt)
        return
      }
      await queue.ack([removal])
      if (removal.kind === 'session') pools.forget(removal.session)
      events.removed(removal.kind, removal.session)
    } catch (error) {
      reportFault(events, 'removal', error)
    }
  }

  /** Tries each removal once: those that are busy may be due again before all were claimed. */
  const removeDue = async (): Promise<void> => {
    const underWay = new Set<Promise<void>>()
    const tried = new Set(removing)
    const endsAtMs = parts.nowMs() + maxClaimingMs
    for (;;) {
      const limit = Math.min(stepSize, settings.batchSize - underWay.size)
      const batch = await queue.claim({ limit, leaseMs: settings.removalLeaseMs })
      for (const removal of batch) {
        if (tried.has(removal.id)) {
          await postpone(removal)
          continue
        }
        tried.add(removal.id)
        const work: Promise<void> = remove(removal).finally(() => underWay.delete(work))
        underWay.add(work)
      }
      if (batch.length < limit || parts.nowMs() >= endsAtMs || stopping.signal.aborted) break
      if (underWay.size >= settings.batchSize) await Promise.race(underWay)
      await setImmediate()
    }
    await Promise.all(underWay)
  }

  /** Drops stored KV that no pod can load; its removal waits in the queue for the next sweep. */
  const dropUseless = async (artefactIds: readonly string[]): Promise<void> => {
    const count = await queue.dropArtefacts({ artefactIds, reason: kvStaleStatus })
    if (count > 0) events.kvUseless(count)
  }

  const removeOrphans = async (): Promise<void> => {
    const nowMs = parts.nowMs()
    if (nowMs < orphansDueAtMs || stopping.signal.aborted) return
    orphansDueAtMs = nowMs + settings.orphanIntervalMs
    await settledWithin(
      timeLimitMs,
      (signal) => pools.sweep({ known: (ids) => queue.knownArtefacts(ids), forget: dropUseless }, signal),
      () => {
        throw new Error('the search for orphaned KV does not end')
      },
      stopping.signal,
    )
  }

  const sweepOnce = async (): Promise<void> => {
    try {
      await expireDue()
      await evictDue()
      await recount()
      await removeDue()
      await removeOrphans()
    } catch (error) {
      reportFault(events, 'sweep', error)
    }
  }

  /** Runs one sweep, after the one that may be running. Callers share the queued sweep. Never rejects. */
  const sweepAndWait = (): Promise<void> => {
    if (queued !== undefined) return queued
    const next = running.then(() => {
      queued = undefined
      return stopping.signal.aborted ? undefined : sweepOnce()
    })
    queued = next
    running = next
    return next
  }

  /** Sweeps from now on, `intervalMs` after each sweep. */
  const start = (): void => {
    timer = setTimeout(async () => {
      await sweepAndWait()
      if (!stopping.signal.aborted) start()
    }, settings.intervalMs)
  }

  return {
    start,
    stop: async () => {
      stopping.abort()
      clearTimeout(timer)
      await running
    },
    sweepAndWait,
    triggerSweep: () => void sweepAndWait(),
  }
}

const toKvRemoval = ({ kind, session, payload }: Removal): KvRemoval =>
  kind === 'artefact' ? { kind, session, payload: payload ?? '' } : { kind, session, payload }
