import { EventEmitter, once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { pause } from '../../async/deadline.ts'
import type { Slices } from '../../async/slices.ts'
import type { ConnectorParts } from '../connector-definition.ts'
import { decodeEvents, maxDecodedBytes } from './decode-events.ts'
import type { EventSources, KvEventSource } from './event-sources.ts'
import { maxMessagesInMemory, openSubscription } from './subscription.ts'
import { createTurnChains, type TurnChains } from './turn-chains.ts'

export interface PodFollowerOptions extends Pick<ConnectorParts, 'pods' | 'log' | 'warnings'> {
  /** Where each pod publishes. */
  readonly sources: EventSources
  /** Where messages are decoded, those of all pods. */
  readonly slices: Slices
  /** How often a pod is asked where it publishes, milliseconds. Default 5,000. */
  readonly askEveryMs?: number
}

/** A turn, and how many of its tokens are waited for. */
export interface ReportedTurn {
  readonly turnId: string
  readonly minTokens: number
}

/** Memory for what one pod publishes: for messages on their way, for the one that is decoded, and for chains. */
const maxBytes = 64 * 1024 * 1024
const maxMessageBytes = 24 * 1024 * 1024
const maxChainBytes = maxBytes - maxMessageBytes - maxDecodedBytes

/** One engine process. */
interface Rank {
  readonly source: KvEventSource
  readonly chains: TurnChains
  readonly close: () => Promise<void>
  /** Since when no event was missed, milliseconds since 1970; infinite while it is not connected. */
  completeSinceMs: number
}

/** The KV events of one pod, as documented in KvEvents. */
export interface PodFollower {
  /** Resolves once events are received, or the pod publishes none. @throws if that fails or the signal fires */
  receive(signal: AbortSignal): Promise<void>
  /** Whether events are received now, without a break since a time of the clock. */
  isLive(sinceMs?: number): boolean
  /** Tokens of the KV blocks that the turn filled or reused, once as many are reported as it waits for. */
  turnTokens(turn: ReportedTurn, signal: AbortSignal): Promise<Uint32Array | undefined>
  /** How many of these lie in the pod's own cache now, from the first one on. */
  residentTokens(turnId: string): number
  /** Closes all connections. */
  close(): Promise<void>
}

/** Follows the KV events of one pod (`host:port`). Warns while it receives none. */
export const followPod = (pod: string, options: PodFollowerOptions): PodFollower => {
  const { pods, sources, slices, askEveryMs = 5_000, log, warnings } = options
  const life = new AbortController()
  const reports = new EventEmitter().setMaxListeners(0)
  let ranks: readonly Rank[] = []

  /** One of `count` engine processes, which share the memory. */
  const openRank = (source: KvEventSource, count: number): Rank => {
    const chains = createTurnChains(maxChainBytes / count)
    let isReadable = true
    const onBatch = async (batch: Uint8Array): Promise<void> => {
      const events = await slices.run(decodeEvents(batch))
      if (events === undefined) {
        if (isReadable) log.warn('KV events of the pod cannot be read', { pod })
        isReadable = false
        chains.forgetResident()
      }
      for (const event of events ?? []) {
        chains.apply(event)
        if (event.kind === 'reported') reports.emit(`turn ${event.turnId}`)
      }
    }
    const rank: Rank = {
      source,
      chains,
      completeSinceMs: Number.POSITIVE_INFINITY,
      close: openSubscription(source, {
        maxMessageBytes: Math.floor(maxMessageBytes / maxMessagesInMemory / count),
        onBatch,
        // As after a time in which this process stood still.
        onGap: () => {
          chains.forgetResident()
          rank.completeSinceMs = Date.now()
        },
        onConnection: (isConnected) => {
          log.info(isConnected ? 'KV events of the pod are received' : 'KV events of the pod are interrupted', { pod })
          chains.forgetResident()
          rank.completeSinceMs = isConnected ? Date.now() : Number.POSITIVE_INFINITY
          if (isLive()) warnings.clear('kv_events_unavailable', pod)
          reports.emit('connection')
        },
      }),
    }
    return rank
  }

  const followed = (): readonly KvEventSource[] => ranks.map(({ source }) => source)

  const closeRanks = async (): Promise<void> => {
    const closing = ranks.map(({ close }) => close())
    ranks = []
    await Promise.all(closing)
  }

  /** @throws Error when an address is invalid */
  const follow = async (found: readonly KvEventSource[]): Promise<void> => {
    if (life.signal.aborted || isDeepStrictEqual(found, followed())) return
    const closed = closeRanks()
    for (const source of found) ranks = [...ranks, openRank(source, found.length)]
    await closed
  }

  const isLive = (sinceMs = Number.MAX_VALUE): boolean =>
    ranks.length > 0 && ranks.every(({ completeSinceMs }) => completeSinceMs <= sinceMs)

  /** Nothing new where the pod has left the list: its address may be that of another engine, which is not called. */
  const find = async (): Promise<readonly KvEventSource[]> =>
    pods().includes(pod) ? sources(pod, life.signal) : followed()

  const keepFollowing = async (): Promise<void> => {
    while (!life.signal.aborted) {
      const fault = await find()
        .then(follow)
        .catch((error: unknown) => error)
      // A connection takes some time.
      await pause(askEveryMs, life.signal)
      if (isLive() || life.signal.aborted || !pods().includes(pod)) continue
      const addresses = ranks.map(({ source }) => source.endpoint).join(', ')
      const cause = addresses === '' ? 'vLLM publishes none (--kv-events-config)' : `${addresses} cannot be reached`
      warnings.raiseOutage('kv_events_unavailable', pod, fault ?? cause)
    }
    await closeRanks()
  }
  const following = keepFollowing()

  const longestOf = (turnId: string): Uint32Array | undefined =>
    ranks.flatMap(({ chains }) => chains.tokens(turnId) ?? []).sort((a, b) => b.length - a.length)[0]

  return {
    receive: async (signal) => {
      const ended = AbortSignal.any([signal, life.signal])
      await follow(await sources(pod, ended))
      while (ranks.length > 0 && !isLive()) await once(reports, 'connection', { signal: ended })
    },
    isLive,
    turnTokens: async ({ turnId, minTokens }, signal) => {
      const ended = AbortSignal.any([signal, life.signal])
      for (;;) {
        const tokens = longestOf(turnId)
        if (ended.aborted || (tokens?.length ?? 0) >= Math.max(1, minTokens)) return tokens
        // Rejects when the signal fires.
        await once(reports, `turn ${turnId}`, { signal: ended }).catch(() => undefined)
      }
    },
    residentTokens: (turnId) =>
      ranks.length === 0 ? 0 : Math.min(...ranks.map(({ chains }) => chains.residentTokens(turnId))),
    close: async () => {
      life.abort()
      await following
    },
  }
}
