import { LRUCache } from 'lru-cache'
import type { SessionKey } from '../sessions/session-record.ts'

/** What happened to a session, for operators. Nothing of a prompt, and no id. */
export interface TimelineEvent {
  /** ISO 8601. */
  readonly at: string
  readonly kind: 'created' | 'turn' | 'deleted' | 'removed'
  readonly pod?: string | undefined
  /** How a turn ended, such as `completed`. */
  readonly outcome?: string | undefined
  /** `x-context-cache` of a turn. */
  readonly cacheStatus?: string | undefined
  /** Where a hit found its KV: `gpu`, `cpu` or `store`. */
  readonly tier?: string | undefined
  /** Of a hit: tokens whose KV the pod held or got. */
  readonly tokens?: number | undefined
  readonly loadMs?: number | undefined
  readonly ttftMs?: number | undefined
  readonly promptTokens?: number | undefined
  readonly cachedTokens?: number | undefined
  readonly outputTokens?: number | undefined
  /** How long the turn waited for a slot. */
  readonly waitedMs?: number | undefined
  /** `stored`, `unchanged`, or why nothing was stored. */
  readonly offload?: string | undefined
  readonly offloadMs?: number | undefined
}

const maxTimelines = 2_000
const maxEvents = 64

interface Timeline {
  readonly events: TimelineEvent[]
  /** Kind of the name that its last turn used, `id` for an id. */
  namedBy: string | undefined
}

/** The last events of the sessions that this process saw last. */
export class SessionTimelines {
  readonly #timelines = new LRUCache<SessionKey, Timeline>({ max: maxTimelines })

  add(session: SessionKey, event: TimelineEvent, namedBy?: string): void {
    const timeline = this.#timelines.get(session) ?? { events: [], namedBy: undefined }
    timeline.events.push(event)
    if (timeline.events.length > maxEvents) timeline.events.shift()
    timeline.namedBy = namedBy ?? timeline.namedBy
    this.#timelines.set(session, timeline)
  }

  /** Oldest first. */
  eventsOf(session: SessionKey): readonly TimelineEvent[] {
    return this.#timelines.peek(session)?.events ?? []
  }

  namedByOf(session: SessionKey): string | undefined {
    return this.#timelines.peek(session)?.namedBy
  }
}
