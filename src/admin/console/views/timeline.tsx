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
  offload: 'KV offload',
  deleted: 'Deleted',
  removed: 'KV removed',
}

const toneOf = ({ kind, tier, outcome, offload }: SessionEvent): string => {
  if (kind === 'turn') return outcome === undefined || outcome === 'completed' ? (tier ?? 'miss') : 'bad'
  return kind === 'offload' && offload !== 'stored' && offload !== 'unchanged' ? 'bad' : 'plain'
}

const Badge = ({ event }: { readonly event: SessionEvent }): VNode | null => {
  const words = badgeOf(event)
  return words === undefined ? null : <span class="badge">{words}</span>
}

const badgeOf = ({ kind, tier, outcome, cacheStatus, offload }: SessionEvent): string | undefined => {
  if (kind === 'offload') return offload
  if (kind !== 'turn') return outcome
  if (outcome !== undefined && outcome !== 'completed') return outcome
  if (tier !== undefined) return tier === 'gpu' ? 'hit on the GPU' : 'hit in the store'
  return cacheStatus?.startsWith('none') ? 'no cache' : 'miss'
}

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
    ['took', time(event.offloadMs)],
    ...(event.kind === 'turn' && event.offload !== undefined ? [['offload', event.offload] as const] : []),
  ]
}

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
