import { Chart, type Series } from '../chart.tsx'
import type { Lookups, Overview, Sample } from '../contract.ts'
import { bytes, count, duration, milliseconds, rounded, share } from '../format.ts'
import { type Column, Table } from '../table.tsx'
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

const tiers = [
  { tier: 'gpu', name: 'On the GPU', label: 'GPU' },
  { tier: 'cpu', name: 'In the CPU’s memory', label: 'CPU' },
  { tier: 'store', name: 'In the store', label: 'Store' },
  { tier: 'miss', name: 'Missed', label: 'Miss' },
] as const satisfies readonly { readonly tier: keyof Lookups; readonly name: string; readonly label: string }[]

/** Few engines have KV in their host's memory. */
const shownTiers = ({ cpu }: Pick<Lookups, 'cpu'>) => tiers.filter(({ tier }) => tier !== 'cpu' || cpu > 0)

/** At a glance: whether the cache helps, and whether anything is wrong. */
export const OverviewView = (props: { readonly overview: Overview; readonly samples: readonly Sample[] }): VNode => {
  const { overview, samples } = props
  return (
    <div class="stack">
      <Warnings overview={overview} />
      <Benefit overview={overview} samples={samples} />
      <Charts samples={samples} lookups={overview.totals.lookups} />
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
  const hits = lookups.gpu + lookups.cpu + lookups.store
  const all = hits + lookups.miss
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
              ['Failed', <WithShare key="failed" value={turns.failed} all={turns.completed + turns.failed} />],
            ]}
          />
        </Tile>
        <Tile title="Hit ratio" value={share(hits, all)} unit={`of ${count(all)} lookups`}>
          <ShareBar parts={shownTiers(lookups).map(({ tier }) => ({ color: `--${tier}`, value: lookups[tier] }))} />
          <Facts
            of={shownTiers(lookups).map(({ tier, name }) => [
              name,
              <span key={tier}>
                <span class="swatch" style={{ background: `var(--${tier})` }} />{' '}
                <WithShare value={lookups[tier]} all={all} />
              </span>,
            ])}
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

const WithShare = (props: { readonly value: number; readonly all: number }): VNode => (
  <span>
    {count(props.value)} {props.value === 0 ? null : <span class="muted">{share(props.value, props.all)}</span>}
  </span>
)

const TtftTile = ({ ttftMs }: { readonly ttftMs: Overview['ttftMs'] }): VNode => {
  const { hit, miss, none } = ttftMs
  const compared =
    hit !== null && miss !== null && hit.p50 > 0
      ? `median; with a miss ${rounded(miss.p50 / hit.p50)} times that`
      : 'median'
  return (
    <Tile title="TTFT with a hit" value={milliseconds(hit?.p50)} unit={compared}>
      <Table
        isSmall
        caption="Time to first token in the last five minutes"
        columns={ttftColumns}
        rows={[
          { name: 'Hit', quantiles: hit },
          { name: 'Miss', quantiles: miss },
          { name: 'No session', quantiles: none },
        ]}
        keyOf={({ name }) => name}
      />
    </Tile>
  )
}

const ttftColumns: readonly Column<{ readonly name: string; readonly quantiles: Overview['ttftMs']['hit'] }>[] = [
  { title: 'Last 5 min', cell: ({ name }) => name },
  { title: 'p50', isNumber: true, cell: ({ quantiles }) => milliseconds(quantiles?.p50) },
  { title: 'p90', isNumber: true, cell: ({ quantiles }) => milliseconds(quantiles?.p90) },
  { title: 'Turns', isNumber: true, cell: ({ quantiles }) => count(quantiles?.count ?? 0) },
]

const Charts = ({ samples, lookups }: { readonly samples: readonly Sample[]; readonly lookups: Lookups }): VNode => {
  const isCpuShown = lookups.cpu > 0
  const times = useMemo(() => samples.map(({ at }) => Date.parse(at) / 1000), [samples])
  const series = useMemo(() => {
    const of = (label: string, color: Series['color'], value: (sample: Sample) => number): Series => ({
      label,
      color,
      values: samples.map(value),
    })
    return {
      turns: [of('Turns', '--accent', ({ turns }) => turns)],
      lookups: shownTiers({ cpu: isCpuShown ? 1 : 0 }).map(({ tier, label }) =>
        of(label, `--${tier}`, (sample) => sample[tier]),
      ),
      prefill: [
        of('Saved', '--saved', ({ savedSeconds }) => savedSeconds),
        of('Computed', '--computed', ({ computedSeconds }) => computedSeconds),
      ],
    }
  }, [samples, isCpuShown])
  const empty = 'No turns in the last 10 minutes.'
  return (
    <section aria-labelledby="history-title">
      <h2 id="history-title">Last 10 minutes</h2>
      <div class="charts">
        <Chart title="Turns" unit="turns per 5 s" times={times} series={series.turns} empty={empty} />
        <Chart
          key={isCpuShown}
          title="Where KV was found"
          unit="turns per 5 s"
          times={times}
          series={series.lookups}
          empty={empty}
        />
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
        <Tile title="Sessions" value={count(current.sessions)} unit="now">
          {named.length === 0 ? (
            <p class="muted">No turn of a session yet.</p>
          ) : (
            <div>
              <p class="muted">Turns, by what named their session:</p>
              <Facts of={named.map(([name, turns]) => [name, count(turns)])} />
            </div>
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
        <Tile title="Turns without cache" value={count(totals.degraded)} tone={totals.degraded > 0 ? 'alert' : 'plain'}>
          <p class="muted">turns that a fault left without a part of the cache</p>
        </Tile>
      </div>
    </section>
  )
}
