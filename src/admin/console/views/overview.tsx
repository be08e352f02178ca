import { Chart, type Series } from '../chart.tsx'
import type { Lookups, Overview, Sample } from '../contract.ts'
import { bytes, count, duration, milliseconds, rounded, share } from '../format.ts'
import { Facts, ShareBar, Tile } from '../tile.tsx'
import { h, type VNode } from '../vendor/preact.js'
import { useMemo } from '../vendor/preact-hooks.js'
import { Warnings } from './warnings.tsx'

const sampleSeconds = 5
/** Of how many samples turns per second are taken: 30 seconds. */
const rateSamples = 6

const turnsPerSecond = (samples: readonly Sample[]): number => {
  const recent = samples.slice(-rateSamples)
  return recent.reduce((all, { turns }) => all + turns, 0) / (sampleSeconds * Math.max(1, recent.length))
}

const total = ({ gpu, store, miss }: Lookups): number => gpu + store + miss

/** At a glance: whether the cache helps, and whether anything is wrong. */
export const OverviewView = (props: { readonly overview: Overview; readonly samples: readonly Sample[] }): VNode => {
  const { overview, samples } = props
  return (
    <div class="stack">
      <Warnings overview={overview} />
      <Benefit overview={overview} samples={samples} />
      <Charts samples={samples} />
      <State overview={overview} />
    </div>
  )
}

/** Whether the cache helps. */
const Benefit = ({
  overview,
  samples,
}: {
  readonly overview: Overview
  readonly samples: readonly Sample[]
}): VNode => {
  const { current, totals, ttftMs } = overview
  const { lookups, prefillSeconds: prefill, turns, promptTokens } = totals
  const hits = lookups.gpu + lookups.store
  const all = total(lookups)
  return (
    <section aria-labelledby="benefit-title">
      <h2 id="benefit-title">Benefit</h2>
      <div class="tiles wide">
        <Tile title="Turns per second" value={rounded(turnsPerSecond(samples))} unit="per s, mean of 30 s">
          <Facts
            of={[
              ['In flight', count(current.turnsInFlight)],
              ['Waiting', count(current.waiting)],
              ['Completed', count(turns.completed)],
              ['Failed', count(turns.failed)],
            ]}
          />
        </Tile>
        <Tile title="Hit ratio" value={share(hits, all)} unit={`of ${count(all)} lookups`}>
          <ShareBar
            parts={[
              { color: '--gpu', value: lookups.gpu },
              { color: '--store', value: lookups.store },
              { color: '--miss', value: lookups.miss },
            ]}
          />
          <Facts
            of={[
              ['On the GPU', <TierShare key="gpu" tier="gpu" value={lookups.gpu} all={all} />],
              ['In the store', <TierShare key="store" tier="store" value={lookups.store} all={all} />],
              ['Missed', <TierShare key="miss" tier="miss" value={lookups.miss} all={all} />],
            ]}
          />
        </Tile>
        <Tile
          title="Prefill saved"
          value={duration(prefill.saved)}
          unit={`${share(prefill.saved, prefill.saved + prefill.computed)} of all`}
        >
          <ShareBar
            parts={[
              { color: '--saved', value: prefill.saved },
              { color: '--computed', value: prefill.computed },
            ]}
          />
          <Facts
            of={[
              ['Computed', duration(prefill.computed)],
              ['Prompt tokens reused', count(promptTokens.cached)],
              ['Prompt tokens computed', count(promptTokens.computed)],
            ]}
          />
        </Tile>
        <TtftTile ttftMs={ttftMs} />
      </div>
    </section>
  )
}

const TierShare = (props: {
  readonly tier: 'gpu' | 'store' | 'miss'
  readonly value: number
  readonly all: number
}): VNode => (
  <span>
    <span class="swatch" style={{ background: `var(--${props.tier})` }} /> {count(props.value)}{' '}
    <span class="muted">{share(props.value, props.all)}</span>
  </span>
)

const TtftTile = ({ ttftMs }: { readonly ttftMs: Overview['ttftMs'] }): VNode => {
  const { hit, miss, none } = ttftMs
  const faster =
    hit !== null && miss !== null && hit.p50 > 0
      ? `median; ${rounded(miss.p50 / hit.p50)}× the speed of a miss`
      : 'median'
  return (
    <Tile title="TTFT with a hit" value={milliseconds(hit?.p50)} unit={faster}>
      <table class="small">
        <caption class="visually-hidden">Time to first token in the last five minutes</caption>
        <thead>
          <tr>
            <th scope="col">Last 5 min</th>
            <th scope="col" class="number">
              p50
            </th>
            <th scope="col" class="number">
              p90
            </th>
            <th scope="col" class="number">
              Turns
            </th>
          </tr>
        </thead>
        <tbody>
          {(
            [
              ['Hit', hit],
              ['Miss', miss],
              ['No session', none],
            ] as const
          ).map(([name, quantiles]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{milliseconds(quantiles?.p50)}</td>
              <td class="number">{milliseconds(quantiles?.p90)}</td>
              <td class="number">{count(quantiles?.count ?? 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Tile>
  )
}

const Charts = ({ samples }: { readonly samples: readonly Sample[] }): VNode => {
  const times = useMemo(() => samples.map(({ at }) => Date.parse(at) / 1000), [samples])
  const series = useMemo(() => {
    const of = (label: string, color: Series['color'], value: (sample: Sample) => number): Series => ({
      label,
      color,
      values: samples.map(value),
    })
    return {
      turns: [of('Turns', '--accent', ({ turns }) => turns)],
      lookups: [
        of('GPU', '--gpu', ({ gpu }) => gpu),
        of('Store', '--store', ({ store }) => store),
        of('Miss', '--miss', ({ miss }) => miss),
      ],
      prefill: [
        of('Saved', '--saved', ({ savedSeconds }) => savedSeconds),
        of('Computed', '--computed', ({ computedSeconds }) => computedSeconds),
      ],
    }
  }, [samples])
  const empty = 'No turns in the last 10 minutes.'
  return (
    <section aria-labelledby="history-title">
      <h2 id="history-title">Last 10 minutes</h2>
      <div class="charts">
        <Chart title="Turns" unit="turns per 5 s" times={times} series={series.turns} empty={empty} />
        <Chart title="Where KV was found" unit="turns per 5 s" times={times} series={series.lookups} empty={empty} />
        <Chart
          title="Prefill"
          unit="seconds per 5 s"
          times={times}
          series={series.prefill}
          format={duration}
          empty={empty}
        />
      </div>
    </section>
  )
}

/** What is kept, what waits, and which promises were broken. */
const State = ({ overview }: { readonly overview: Overview }): VNode => {
  const { current, totals } = overview
  const named = Object.entries(totals.namedBy).sort(([, one], [, other]) => other - one)
  return (
    <section aria-labelledby="state-title">
      <h2 id="state-title">State</h2>
      <div class="tiles">
        <Tile
          title="Sessions"
          value={count(current.sessions)}
          unit={named.length === 0 ? 'now' : 'now; turns by their name:'}
        >
          {named.length === 0 ? (
            <p class="muted">No turn of a session yet.</p>
          ) : (
            <Facts of={named.map(([name, turns]) => [`by ${name}`, count(turns)])} />
          )}
        </Tile>
        <Tile title="Stored KV" value={bytes(current.storedBytes)}>
          <p class="muted">{current.storedBytes === null ? 'The store does not say.' : 'of all sessions'}</p>
        </Tile>
        <Tile title="Removals that wait" value={count(current.removalsPending)}>
          <p class="muted">KV of ended sessions that is not deleted yet</p>
        </Tile>
        <Tile
          title="Promises not kept"
          value={count(totals.hitsNotReused)}
          tone={totals.hitsNotReused > 0 ? 'alert' : 'plain'}
        >
          <p class="muted">hits whose KV the engine did not reuse</p>
        </Tile>
        <Tile
          title="Answered without cache"
          value={count(totals.degraded)}
          tone={totals.degraded > 0 ? 'alert' : 'plain'}
        >
          <p class="muted">turns that a fault of the store left without their session</p>
        </Tile>
      </div>
    </section>
  )
}
