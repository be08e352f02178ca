import type { Pod, Pool } from '../contract.ts'
import { count, milliseconds, share } from '../format.ts'
import { type Column, Table } from '../table.tsx'
import { Sign } from '../tile.tsx'
import { h, type VNode } from '../vendor/preact.js'

/** Where KV lies, and how each pod does. */
export const PodsView = ({ pools }: { readonly pools: readonly Pool[] | undefined }): VNode => {
  if (pools === undefined) return <p class="loading">Loading…</p>
  if (pools.every(({ pods }) => pods.length === 0))
    return (
      <p class="card empty">
        No pods are known. Set <code>routing.pods</code>, or look at the warnings of pod discovery.
      </p>
    )
  return (
    <div class="stack">
      {pools.map((pool) => (
        <section class="card" key={pool.name}>
          <Table
            caption={<PoolCaption pool={pool} />}
            columns={columns}
            rows={pool.pods}
            keyOf={({ address }) => address}
          />
        </section>
      ))}
    </div>
  )
}

const PoolCaption = ({ pool }: { readonly pool: Pool }): VNode => {
  const ready = pool.pods.filter(({ ready: isReady }) => isReady).length
  return (
    <span>
      <b>Pool {pool.name}</b>{' '}
      <span class="muted">
        connector {pool.connector}, {ready} of {pool.pods.length} pods ready
      </span>
    </span>
  )
}

const columns: readonly Column<Pod>[] = [
  { title: 'Pod', cell: ({ address }) => <code>{address}</code> },
  {
    title: 'Health',
    cell: ({ ready }) =>
      ready ? (
        <span class="ok">
          <span aria-hidden="true">●</span> ready
        </span>
      ) : (
        <span class="not-ok">
          <Sign>Attention: </Sign> not ready
        </span>
      ),
  },
  { title: 'Sessions with KV', isNumber: true, cell: ({ sessions }) => count(sessions) },
  { title: 'Turns in flight', isNumber: true, cell: ({ turnsInFlight }) => count(turnsInFlight) },
  { title: 'Loads under way', isNumber: true, cell: ({ loadsUnderWay }) => count(loadsUnderWay) },
  { title: 'Load, median', isNumber: true, cell: ({ loadMsP50 }) => milliseconds(loadMsP50) },
  { title: 'Turns', isNumber: true, cell: ({ turns }) => count(turns) },
  {
    title: 'Hits',
    isNumber: true,
    cell: ({ hits, turns }) => (
      <span>
        {count(hits)} <span class="muted">{share(hits, turns)}</span>
      </span>
    ),
  },
  { title: 'Models', cell: ({ models }) => (models.length === 0 ? '–' : models.join(', ')) },
]
