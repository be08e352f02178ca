import { z } from 'zod'
import { duration, size, whole } from './figures.ts'
import { type podsSchema, podsText } from './pods.ts'
import { printable } from './table.ts'

const count = z.number().nullable()
const latency = z.object({ count: z.number(), p50: z.number(), p90: z.number() }).nullable()
const sample = z.object({ at: z.string(), turns: z.number() })

/** `GET /api/overview`, and the event of this name. */
export const overviewSchema = z.object({
  version: z.string(),
  startedAt: z.string(),
  now: z.string(),
  store: z.object({ kind: z.string(), available: z.boolean() }),
  warnings: z.array(z.object({ kind: z.string(), subject: z.string(), text: z.string(), sinceSeconds: z.number() })),
  current: z.object({
    turnsInFlight: count,
    waiting: count,
    sessions: count,
    storedBytes: count,
    removalsPending: count,
  }),
  totals: z.object({
    turns: z.object({ completed: z.number(), failed: z.number() }),
    lookups: z.object({ gpu: z.number(), cpu: z.number(), store: z.number(), miss: z.number() }),
    promptTokens: z.object({ cached: z.number(), computed: z.number() }),
    prefillSeconds: z.object({ saved: z.number(), computed: z.number() }),
    hitsNotReused: z.number(),
    degraded: z.number(),
  }),
  ttftMs: z.object({ hit: latency, miss: latency, none: latency }),
  samples: z.array(sample).optional(),
})

export type Overview = z.output<typeof overviewSchema>

/** What is known at a time. */
export interface Moment {
  readonly overview: Overview
  readonly pods: z.output<typeof podsSchema>
}

/** What `top` shows of it, in lines. */
export const renderFrame = ({ overview, pods }: Moment): readonly string[] => {
  const { current, totals, ttftMs, store, warnings } = overview
  const { lookups, promptTokens, prefillSeconds, turns } = totals
  const upSeconds = (Date.parse(overview.now) - Date.parse(overview.startedAt)) / 1_000
  const found = lookups.gpu + lookups.cpu + lookups.store
  const latencyOf = (name: keyof Overview['ttftMs']): string => {
    const figures = ttftMs[name]
    return `${name} ${figures === null ? '-' : `${whole(figures.p50)} / ${whole(figures.p90)} (${whole(figures.count)})`}`
  }
  return [
    `Context Cache Gateway ${overview.version}, up ${duration(upSeconds)}, store ${store.kind}${store.available ? '' : ' UNAVAILABLE'}`,
    '',
    `now         turns ${whole(current.turnsInFlight)}, waiting ${whole(current.waiting)}, sessions ${whole(current.sessions)}, stored ${size(current.storedBytes)}, removals ${whole(current.removalsPending)}`,
    `turns       ${whole(turns.completed)} completed, ${whole(turns.failed)} failed, ${whole(totals.degraded)} without a part of the cache`,
    `lookups     ${whole(found)} hits (gpu ${whole(lookups.gpu)}, cpu ${whole(lookups.cpu)}, store ${whole(lookups.store)}), ${whole(lookups.miss)} misses, ${whole(totals.hitsNotReused)} hits not reused`,
    `prompts     ${whole(promptTokens.cached)} tokens cached, ${whole(promptTokens.computed)} computed`,
    `prefill     ${duration(prefillSeconds.saved)} saved, ${duration(prefillSeconds.computed)} computed`,
    `TTFT ms     ${(['hit', 'miss', 'none'] as const).map(latencyOf).join(', ')}; p50 / p90 (turns) of 5 minutes`,
    '',
    ...podsText(pods).split('\n'),
    ...(warnings.length === 0 ? [] : ['', ...warnings.map(warningLine)]),
  ].map(printable)
}

const warningLine = ({ kind, subject, text, sinceSeconds }: Overview['warnings'][number]): string =>
  `warning     ${kind}${subject === '' ? '' : ` (${subject})`} for ${duration(sinceSeconds)}: ${text}`
