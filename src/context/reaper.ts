import { setMaxListeners } from 'node:events'
import { withinLimit } from '../kvcache/deadline.ts'
import type { KvConnector, KvRemoval } from '../kvcache/kv-connector.ts'
import type { TurnForecast } from '../routing/turn-forecast.ts'
import type { Removal, RemovalQueue } from '../sessions/removal-queue.ts'
import { StoreUnavailableError } from '../sessions/session-store.ts'
import type { ContextEvents } from './context-events.ts'

export interface ReaperSettings {
  /** Time between two sweeps. */
  readonly intervalMs: number
  /** Sessions ended, and removals taken, in one step. */
  readonly batchSize: number
  /** A removal that was taken comes again after this time unless it was done. */
  readonly removalLeaseMs: number
  /** Wait before a removal whose KV is still in use is tried again; doubles with every try, up to 30 s. */
  readonly retryDelayMs: number
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

const removalTimeoutMs = 10_000
const maxDelayMs = 30_000

export const createReaper = (
  parts: {
    readonly queue: RemovalQueue
    readonly connector: KvConnector
    readonly events: ContextEvents
    readonly forecast: Pick<TurnForecast, 'forget'>
  },
  settings: ReaperSettings,
): Reaper => {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined
  let sweeps = 0
  const stopping = new AbortController()
  // Every removal under way listens to it.
  setMaxListeners(0, stopping.signal)

  const delayAfter = (attempt: number): number =>
    Math.min(settings.retryDelayMs * 2 ** Math.min(attempt - 1, 10), maxDelayMs)

  const removeOne = async (removal: Removal): Promise<void> => {
    const outcome = await withinLimit(
      removalTimeoutMs,
      (signal) => parts.connector.remove(toKvRemoval(removal), signal),
      stopping.signal,
    )
    switch (outcome.kind) {
      case 'removed':
        await parts.queue.settle(removal.id)
        if (removal.kind === 'session') parts.forecast.forget(removal.session)
        parts.events.removed(removal.kind)
        return
      case 'busy':
        await parts.queue.postpone(removal.id, delayAfter(removal.attempt))
        parts.events.removalPostponed(outcome.reason, removal.attempt)
        return
    }
  }

  const report = (where: string, error: unknown): void => {
    if (error instanceof StoreUnavailableError) parts.events.storeFault(where, error)
    else parts.events.fault(where, error)
  }

  const removeDue = async (): Promise<void> => {
    for (;;) {
      const batch = await parts.queue.claim({ limit: settings.batchSize, leaseMs: settings.removalLeaseMs })
      await Promise.all(batch.map((removal) => removeOne(removal).catch((error: unknown) => report('removal', error))))
      if (batch.length < settings.batchSize || stopping.signal.aborted) return
    }
  }

  const expireDue = async (): Promise<void> => {
    // Each step is small, so that lookups are served in between.
    for (;;) {
      const ended = await parts.queue.expireDue(settings.batchSize)
      if (ended > 0) parts.events.sessionsExpired(ended)
      if (ended < settings.batchSize || stopping.signal.aborted) return
    }
  }

  const sweepOnce = async (): Promise<void> => {
    try {
      await expireDue()
      await removeDue()
      if (sweeps % settings.sweepsPerReconcile === 0) {
        await withinLimit(
          removalTimeoutMs,
          (signal) => parts.connector.reconcile((ids) => parts.queue.knownArtefacts(ids), signal),
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

const toKvRemoval = (removal: Removal): KvRemoval => {
  const { session, payload } = removal
  return removal.kind === 'artefact'
    ? { kind: 'artefact', session, payload: payload ?? '' }
    : { kind: 'session', session, payload }
}
