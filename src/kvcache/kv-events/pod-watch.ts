import type { KvLog } from '../kv-log.ts'
import { type KvEventSource, sameSources } from './kv-event-source.ts'
import type { KvPrefix } from './kv-events.ts'
import { type SourceWatch, type SourceWatchOptions, watchSource } from './source-watch.ts'
import { createTurnWaiters } from './turn-waiters.ts'

/** One pod: where it publishes, and what its engine processes told. */
export interface PodWatch {
  readonly live: boolean
  residentTokens(prefix: KvPrefix): number | undefined
  turnTokens(
    turn: { readonly turnId: string; readonly minTokens: number },
    signal: AbortSignal,
  ): Promise<Uint32Array | undefined>
  /** Asks the pod where it publishes if it is time to. `now`: milliseconds of a clock that never goes back. */
  tick(now: number): void
  close(): Promise<void>
}

export interface PodWatchOptions {
  /** `host:port` */
  readonly pod: string
  readonly sourcesOf: (pod: string, signal: AbortSignal) => Promise<readonly KvEventSource[]>
  readonly log: KvLog
  readonly maxBlocks: number
  readonly replaySilenceMs: number
  readonly tailCheckMs: number
  /** How often a pod that publishes is asked whether it still does so in the same places. */
  readonly sourcesCheckMs: number
  /** How soon a pod without sources is asked again; each time twice as late, up to `sourcesCheckMs` at least. */
  readonly retryMs: number
}

/** `unknown`: it was not asked yet, or did not answer. */
type Publishing = 'unknown' | 'nowhere' | 'somewhere'

export const createPodWatch = (options: PodWatchOptions): PodWatch => {
  const { pod, log } = options
  const life = new AbortController()
  let publishing: Publishing = 'unknown'
  let sources: readonly KvEventSource[] = []
  let watches: readonly SourceWatch[] = []
  let asking = false
  let dueAt = 0
  let retryMs = options.retryMs
  let reachable = true
  let closing: Promise<unknown> = Promise.resolve()

  const isLive = (): boolean => watches.length > 0 && watches.every((watch) => watch.live)

  const turnLength = (turnId: string): number => Math.max(0, ...watches.map(({ index }) => index.turnLength(turnId)))
  const waiters = createTurnWaiters(turnLength)

  const dismiss = (leaving: readonly SourceWatch[]): void => {
    closing = Promise.allSettled([closing, ...leaving.map((watch) => watch.close())])
  }

  const watchOptions = (source: KvEventSource, count: number): SourceWatchOptions => ({
    source,
    maxBlocks: Math.ceil(options.maxBlocks / count),
    replaySilenceMs: options.replaySilenceMs,
    tailCheckMs: options.tailCheckMs,
    onTurn: (turnId) => waiters.told(turnId),
    onLive: (live) => {
      if (live && isLive()) log.info("the engine's KV events are complete", { pod })
      else if (!live) log.info("the engine's KV events are incomplete", { pod })
    },
    onLost: () => log.warn('KV events were lost: what the engine holds is learnt anew', { pod }),
    onDisconnect: () => {
      // It may come back with other addresses.
      dueAt = 0
    },
  })

  const open = (found: readonly KvEventSource[]): readonly SourceWatch[] => {
    const opened: SourceWatch[] = []
    try {
      for (const source of found) opened.push(watchSource(watchOptions(source, found.length)))
      return opened
    } catch (fault) {
      dismiss(opened)
      throw fault
    }
  }

  /** @throws when one of the addresses is none */
  const follow = (found: readonly KvEventSource[]): void => {
    if (publishing === 'somewhere' && sameSources(found, sources)) return
    dismiss(watches)
    watches = []
    if (found.length === 0) {
      if (publishing !== 'nowhere') log.info('the engine publishes no KV events', { pod })
      publishing = 'nowhere'
      waiters.release()
      return
    }
    publishing = 'unknown'
    watches = open(found)
    sources = found
    publishing = 'somewhere'
  }

  const unanswered = (err: unknown): void => {
    if (reachable) log.warn('where the engine publishes its KV events cannot be learnt', { pod, err })
    reachable = false
  }

  const ask = async (): Promise<void> => {
    try {
      const found = await options.sourcesOf(pod, life.signal)
      if (life.signal.aborted) return
      follow(found)
      reachable = true
    } catch (err) {
      if (!life.signal.aborted) unanswered(err)
    }
  }

  const askAndPlan = async (now: number): Promise<void> => {
    asking = true
    await ask()
    asking = false
    const settled = publishing === 'somewhere' && reachable
    dueAt = now + (settled ? options.sourcesCheckMs : retryMs)
    retryMs = settled ? options.retryMs : Math.min(retryMs * 2, options.sourcesCheckMs)
  }

  return {
    get live() {
      return isLive()
    },
    residentTokens: (prefix) =>
      isLive() ? Math.min(...watches.map(({ index }) => index.residentTokens(prefix))) : undefined,
    turnTokens: async (turn, signal) => {
      if (publishing !== 'nowhere' && !life.signal.aborted) await waiters.wait(turn, signal)
      const { turnId } = turn
      const best = watches.find(({ index }) => index.turnLength(turnId) === turnLength(turnId))
      return best?.index.turnTokens(turnId)
    },
    tick: (now) => {
      if (!asking && !life.signal.aborted && now >= dueAt) void askAndPlan(now)
    },
    close: async () => {
      life.abort()
      waiters.release()
      dismiss(watches)
      watches = []
      await closing
    },
  }
}
