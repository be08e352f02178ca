import type { SessionEvent } from '../contract.ts'
import { clock, count, dateAndTime, milliseconds, share } from '../format.ts'
import { ShareBar } from '../tile.tsx'
import { type ComponentChildren, h, type VNode } from '../vendor/preact.js'

/** What happened to a session, the latest first. */
export const Timeline = ({ events }: { readonly events: readonly SessionEvent[] }): VNode => {
  if (events.length === 0)
    return (
      <p class="empty">
        This gateway has seen nothing of the session yet. Another gateway may have served it, or this one started later.
      </p>
    )
  return (
    <ol class="timeline" reversed>
      {events.map((event, index) => <Event key={`${event.at} ${event.kind} ${index}`} event={event} />).reverse()}
    </ol>
  )
}

const Event = ({ event }: { readonly event: SessionEvent }): VNode => (
  <li class={`event ${event.kind} ${toneOf(event)}`}>
    <time dateTime={event.at} title={dateAndTime(event.at)}>
      {clock(event.at)}
    </time>
    <div>
      <p class="event-title">
        <b>{titles[event.kind]}</b> <Badge event={event} />
        {event.pod === undefined ? null : (
          <span class="muted">
            at <code>{event.pod}</code>
          </span>
        )}
      </p>
      <Details of={detailsOf(event)} />
      {event.promptTokens === undefined || event.promptTokens === 0 ? null : (
        <ShareBar
          parts={[
            { color: '--saved', value: event.cachedTokens ?? 0 },
            { color: '--computed', value: event.promptTokens - (event.cachedTokens ?? 0) },
          ]}
        />
      )}
      {event.cacheStatus === undefined ? null : <code class="status">{event.cacheStatus}</code>}
    </div>
  </li>
)

const titles: Readonly<Record<SessionEvent['kind'], string>> = {
  created: 'Created',
  turn: 'Turn',
  deleted: 'Deleted',
  removed: 'KV removed',
}

const toneOf = ({ kind, tier, outcome }: SessionEvent): string => {
  if (kind !== 'turn') return 'plain'
  return isCompleted(outcome) ? (tier ?? 'miss') : 'bad'
}

const isCompleted = (outcome: string | undefined): boolean => outcome === undefined || outcome === 'completed'

const Badge = ({ event }: { readonly event: SessionEvent }): VNode | null => {
  const words = badgeOf(event)
  return words === undefined ? null : <span class="badge">{words}</span>
}

const badgeOf = ({ kind, tier, outcome, cacheStatus }: SessionEvent): string | undefined => {
  if (kind !== 'turn' || !isCompleted(outcome)) return outcome
  if (tier !== undefined) return hits[tier]
  return cacheStatus?.startsWith('none') ? 'no cache' : 'miss'
}

const hits = { gpu: 'hit on the GPU', cpu: 'hit in the CPU’s memory', store: 'hit in the store' } as const

type Detail = readonly [name: string, value: string | undefined]

const tokens = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : `${count(value)} tokens`
const time = (value: number | undefined): string | undefined => (value === undefined ? undefined : milliseconds(value))

const detailsOf = (event: SessionEvent): readonly Detail[] => {
  const { promptTokens: prompt, cachedTokens: cached } = event
  return [
    ['prompt', tokens(prompt)],
    ['reused', cached === undefined ? undefined : `${count(cached)} (${share(cached, prompt ?? 0)})`],
    ['output', tokens(event.outputTokens)],
    ['KV', tokens(event.tokens)],
    ['load', time(event.loadMs)],
    ['TTFT', time(event.ttftMs)],
    ['waited', event.waitedMs === 0 ? undefined : time(event.waitedMs)],
    ['offload', offloadOf(event)],
  ]
}

const offloadOf = ({ offload, offloadMs }: SessionEvent): string | undefined =>
  offload === undefined || offloadMs === undefined ? offload : `${offload} in ${milliseconds(offloadMs)}`

const Details = (props: { readonly of: readonly Detail[] }): VNode | null => {
  const known: ComponentChildren[] = props.of.flatMap(([name, value]) =>
    value === undefined
      ? []
      : [
          <div key={name}>
            <dt>{name}</dt> <dd>{value}</dd>
          </div>,
        ],
  )
  return known.length === 0 ? null : <dl class="details">{known}</dl>
}
