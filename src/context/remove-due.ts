import { setImmediate } from 'node:timers/promises'
import { withinLimit } from '../async/deadline.ts'
import type { KvConnector, KvRemoval } from '../kvcache/kv-connector.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { Removal, RemovalQueue } from '../sessions/removal-queue.ts'
import type { ContextEvents } from './context-events.ts'

export interface RemoveDueParts {
  readonly queue: Pick<RemovalQueue, 'claim' | 'settle' | 'postpone'>
  readonly connector: Pick<KvConnector, 'remove'>
  readonly events: Pick<ContextEvents, 'removed' | 'removalPostponed'>
  readonly forecast: Pick<TtftPredictor, 'forget'>
  /** What went wrong with a removal, which then comes again when its lease has run out. */
  readonly onFault: (error: unknown) => void
  /** Ends every removal that is under way. */
  readonly stopping: AbortSignal
}

export interface RemoveDueSettings {
  /** Removals that run at once, at most. */
  readonly batchSize: number
  /** Removals that begin, or are struck off, in one step, at most: turns are served between one and the next. */
  readonly stepSize: number
  /** A removal that was taken comes again after this time unless it was done. */
  readonly removalLeaseMs: number
  /** Wait before a removal whose KV is still in use is tried again; doubles with every try, up to 30 s. */
  readonly retryDelayMs: number
}

const removalTimeoutMs = 10_000
const maxDelayMs = 30_000

/** Does the removals that are due, until no more are, and resolves when the last of them has ended. Never rejects but for the queue's `claim`. */
export const createRemoveDue = (parts: RemoveDueParts, settings: RemoveDueSettings): (() => Promise<void>) => {
  const delayAfter = (attempt: number): number =>
    Math.min(settings.retryDelayMs * 2 ** Math.min(attempt - 1, 10), maxDelayMs)

  return async () => {
    let underWay = 0
    let tellEnd = (): void => {}
    const removed: Removal[] = []
    const oneEnds = (): Promise<void> =>
      new Promise((resolve) => {
        tellEnd = resolve
      })
    const end = (count: number): void => {
      underWay -= count
      tellEnd()
    }
    const strikeOff = async (): Promise<void> => {
      const gone = removed.splice(0, settings.stepSize)
      if (removed.length > 0) void setImmediate().then(strikeOff)
      try {
        await parts.queue.settle(gone)
        for (const { kind, session } of gone) {
          if (kind === 'session') parts.forecast.forget(session)
          parts.events.removed(kind)
        }
      } catch (error) {
        parts.onFault(error)
      }
      end(gone.length)
    }
    const start = async (removal: Removal, signal: AbortSignal): Promise<void> => {
      try {
        const outcome = await parts.connector.remove(toKvRemoval(removal), signal)
        if (outcome.kind === 'removed') {
          // What is removed within one round of the event loop is struck off together.
          if (removed.push(removal) === 1) void setImmediate().then(strikeOff)
          return
        }
        await parts.queue.postpone(removal, delayAfter(removal.attempt))
        parts.events.removalPostponed(outcome.reason, removal.attempt)
      } catch (error) {
        parts.onFault(error)
      }
      end(1)
    }
    // They begin together, and so have one deadline: signals are large, and a signal's listeners keep hold of those that came after them.
    const startAll = (batch: readonly Removal[]): Promise<unknown> => {
      underWay += batch.length
      return withinLimit(
        removalTimeoutMs,
        (signal) => Promise.all(batch.map((removal) => start(removal, signal))),
        parts.stopping,
      )
    }
    for (;;) {
      const limit = Math.min(settings.stepSize, settings.batchSize - underWay)
      const batch = await parts.queue.claim({ limit, leaseMs: settings.removalLeaseMs })
      if (batch.length > 0) void startAll(batch)
      if (batch.length < limit || parts.stopping.aborted) break
      if (underWay >= settings.batchSize) await oneEnds()
      await setImmediate()
    }
    while (underWay > 0) await oneEnds()
  }
}

const toKvRemoval = (removal: Removal): KvRemoval => {
  const { session, payload } = removal
  return removal.kind === 'artefact'
    ? { kind: 'artefact', session, payload: payload ?? '' }
    : { kind: 'session', session, payload }
}
