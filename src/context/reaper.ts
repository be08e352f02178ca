import { setMaxListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { withinLimit } from '../async/deadline.ts'
import type { KvConnector } from '../kvcache/kv-connector.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import { kvStaleNote } from '../sessions/eviction.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import { StoreUnavailableError } from '../sessions/session-store.ts'
import type { ContextEvents } from './context-events.ts'
import { createRemoveDue, type RemoveDueSettings } from './remove-due.ts'

export interface ReaperSettings extends Omit<RemoveDueSettings, 'stepSize'> {
  /** Time between two sweeps. */
  readonly intervalMs: number
  /** Orphans are looked for with every so many sweeps. */
  readonly sweepsPerReconcile: number
}

/**
 * Ends sessions whose time is over, and removes the KV of whatever has ended: from the store and from every pod, at least once.
 * Every gateway process runs one; the queue hands each removal to one of them at a time.
 */
export interface Reaper {
  start: () => void
  stop: () => Promise<void>
  /** One sweep, after the one that may be running. Never rejects. */
  sweep: () => Promise<void>
  /** A sweep soon, without waiting for it. */
  sweepSoon: () => void
}

/** Sessions ended, or removals begun, in one step: turns are served between one and the next, in this process and in the store. */
const longestStep = 10
const reconcileTimeoutMs = 10_000

export const createReaper = (
  parts: {
    readonly queue: RemovalQueue
    readonly connector: KvConnector
    readonly events: ContextEvents
    readonly forecast: Pick<TtftPredictor, 'forget'>
  },
  settings: ReaperSettings,
): Reaper => {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined
  let sweeps = 0
  const stopping = new AbortController()
  // Every step of removals under way listens to it.
  setMaxListeners(0, stopping.signal)

  const stepSize = Math.min(settings.batchSize, longestStep)

  const report = (where: string, error: unknown): void => {
    if (error instanceof StoreUnavailableError) parts.events.storeFault(where, error)
    else parts.events.fault(where, error)
  }

  const removeDue = createRemoveDue(
    { ...parts, onFault: (error) => report('removal', error), stopping: stopping.signal },
    { ...settings, stepSize },
  )

  const expireDue = async (): Promise<void> => {
    for (;;) {
      const { ended, hasMore } = await parts.queue.expireDue(stepSize)
      if (ended > 0) parts.events.sessionsExpired(ended)
      if (!hasMore || stopping.signal.aborted) return
      await setImmediate()
    }
  }

  const evictDue = async (): Promise<void> => {
    for (;;) {
      const steps = await parts.queue.evict(stepSize)
      if (steps < stepSize || stopping.signal.aborted) return
      await setImmediate()
    }
  }

  /** Its removal waits in the queue then, for the next sweep at the latest. */
  const dropUseless = async (artefactIds: readonly string[]): Promise<void> => {
    const count = await parts.queue.dropArtefacts({ artefactIds, reason: kvStaleNote })
    if (count > 0) parts.events.kvUseless(count)
  }

  const sweepOnce = async (): Promise<void> => {
    try {
      await expireDue()
      await evictDue()
      await removeDue()
      if (sweeps % settings.sweepsPerReconcile === 0) {
        await withinLimit(
          reconcileTimeoutMs,
          (signal) => parts.connector.reconcile((ids) => parts.queue.knownArtefacts(ids), signal, dropUseless),
          stopping.signal,
        )
      }
      sweeps += 1
    } catch (error) {
      report('sweep', error)
    }
  }

  /** At most one sweep runs and one waits: whoever asks while one waits shares it. */
  const sweep = (): Promise<void> => {
    if (waiting !== undefined) return waiting
    const next = running.then(() => {
      waiting = undefined
      return stopping.signal.aborted ? undefined : sweepOnce()
    })
    waiting = next
    running = next
    return next
  }

  const sweepAgain = (): void => {
    timer = setTimeout(() => {
      void sweep().then(() => {
        if (!stopping.signal.aborted) sweepAgain()
      })
    }, settings.intervalMs)
  }

  return {
    start: sweepAgain,
    stop: async () => {
      stopping.abort()
      clearTimeout(timer)
      await running
    },
    sweep,
    sweepSoon: () => void sweep(),
  }
}
