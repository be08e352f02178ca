import { readSessions, type SessionFilter, wordsOf } from '../api.ts'
import type { Session, SessionPage } from '../contract.ts'
import { ago, bytes, count, share, until } from '../format.ts'
import { type Column, Table } from '../table.tsx'
import { h, type VNode } from '../vendor/preact.js'
import { useEffect, useState } from '../vendor/preact-hooks.js'

const everything: SessionFilter = { model: '', tenant: '' }
const shownOfTenant = 8

type Outcome = SessionPage | { readonly problem: string } | undefined

/** Sessions by digest, model and tenant; page by page. */
export const SessionList = ({ now, models }: { readonly now: Date; readonly models: readonly string[] }): VNode => {
  const [filter, setFilter] = useState(everything)
  // What is typed and not chosen yet: each second the page is rendered anew.
  const [tenantText, setTenantText] = useState('')
  const [after, setAfter] = useState<string | null>(null)
  const [outcome, setOutcome] = useState<Outcome>()
  const [round, setRound] = useState(0)

  useEffect(() => {
    let isStale = false
    readSessions(filter, after).then(
      (page) => !isStale && setOutcome(page),
      (error: unknown) => !isStale && setOutcome({ problem: wordsOf(error) }),
    )
    return () => {
      isStale = true
    }
  }, [filter, after, round])

  const choose = (next: SessionFilter): void => {
    setFilter(next)
    setTenantText(next.tenant)
    setAfter(null)
  }
  return (
    <section class="card" aria-labelledby="list-title">
      <h2 id="list-title">All sessions</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label>
          Model
          <select
            value={filter.model}
            onChange={({ currentTarget }) => choose({ ...filter, model: currentTarget.value })}
          >
            <option value="">all</option>
            {models.map((model) => (
              <option key={model} value={model}>
                {model}
              </option>
            ))}
          </select>
        </label>
        <label class="grow">
          Tenant's digest
          <input
            type="text"
            value={tenantText}
            placeholder="22 characters, as a session shows it"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            maxLength={22}
            onInput={({ currentTarget }) => setTenantText(currentTarget.value)}
            onChange={({ currentTarget }) => choose({ ...filter, tenant: currentTarget.value.trim() })}
          />
        </label>
        <button type="button" onClick={() => setRound((before) => before + 1)}>
          Refresh
        </button>
      </form>
      <List
        {...{ outcome, now, isFiltered: filter.model !== '' || filter.tenant !== '' }}
        onTenant={(tenant) => choose({ ...filter, tenant })}
      />
      <div class="row">
        {after === null ? null : (
          <button type="button" onClick={() => setAfter(null)}>
            First page
          </button>
        )}
        {outcome !== undefined && 'next' in outcome && outcome.next !== null ? (
          <button type="button" onClick={() => setAfter(outcome.next)}>
            Next page
          </button>
        ) : null}
      </div>
    </section>
  )
}

const List = (props: {
  readonly outcome: Outcome
  readonly now: Date
  readonly isFiltered: boolean
  readonly onTenant: (tenant: string) => void
}): VNode => {
  const { outcome, now, isFiltered, onTenant } = props
  if (outcome === undefined) return <p class="loading">Loading…</p>
  if ('problem' in outcome)
    return (
      <p class="problem" role="alert">
        {outcome.problem}
      </p>
    )
  const { data, next } = outcome
  if (data.length > 0)
    return (
      <Table
        caption={`${count(data.length)} ${data.length === 1 ? 'session' : 'sessions'}${next === null ? '' : ' of this page; more follow'}`}
        columns={columnsAt(now, onTenant)}
        rows={data}
        keyOf={({ digest, tenant, createdAt }) => `${digest} ${tenant} ${createdAt}`}
      />
    )
  if (next !== null) return <p class="empty">None on this page; the next one may have some.</p>
  return (
    <p class="empty">
      {isFiltered
        ? 'No session is of this model and tenant.'
        : 'No sessions. A client makes one with POST /v1/context, or by naming its conversation.'}
    </p>
  )
}

const columnsAt = (now: Date, onTenant: (tenant: string) => void): readonly Column<Session>[] => [
  { title: 'Digest', cell: ({ digest }) => <code>{digest}</code> },
  {
    title: 'Tenant',
    cell: ({ tenant }) => (
      <button type="button" class="link" title="Show the sessions of this tenant" onClick={() => onTenant(tenant)}>
        <code>{tenant.slice(0, shownOfTenant)}…</code>
      </button>
    ),
  },
  { title: 'Model', cell: ({ model }) => model },
  { title: 'Named by', cell: ({ namedBy }) => namedBy ?? '–' },
  { title: 'Turns', isNumber: true, cell: ({ turns }) => count(turns) },
  { title: 'Prompt tokens', isNumber: true, cell: ({ tokens }) => count(tokens.prompt) },
  { title: 'Reused', isNumber: true, cell: ({ tokens }) => share(tokens.cached, tokens.prompt) },
  { title: 'Stored KV', isNumber: true, cell: ({ kv }) => bytes(kv?.bytes ?? null) },
  { title: 'Pod', cell: ({ pod }) => (pod === null ? '–' : <code>{pod}</code>) },
  {
    title: 'Created',
    isNumber: true,
    cell: ({ createdAt }) => <time dateTime={createdAt}>{ago(createdAt, now)}</time>,
  },
  {
    title: 'Expires',
    isNumber: true,
    cell: ({ expiresAt }) => <time dateTime={expiresAt}>{until(expiresAt, now)}</time>,
  },
]
