import { readTenant, readTenants, wordsOf } from '../api.ts'
import type { TenantUse } from '../contract.ts'
import { bytes, count, share } from '../format.ts'
import { type Column, Table } from '../table.tsx'
import { h, type VNode } from '../vendor/preact.js'
import { useEffect, useState } from '../vendor/preact-hooks.js'

/** Each takes the gateway a look at all of its sessions. */
const mostTenants = 20

type Outcome = { readonly uses: readonly TenantUse[] } | { readonly problem: string } | undefined

/** Finds a tenant by its digest, and lists some that have sessions. */
export const TenantList = ({ onChosen }: { readonly onChosen: (tenant: string) => void }): VNode => {
  const [outcome, setOutcome] = useState<Outcome>()
  const [text, setText] = useState('')
  const [problem, setProblem] = useState('')
  const [round, setRound] = useState(0)

  useEffect(() => {
    let isStale = false
    readUses(() => isStale).then(
      (uses) => !isStale && setOutcome({ uses }),
      (error: unknown) => !isStale && setOutcome({ problem: wordsOf(error) }),
    )
    return () => {
      isStale = true
    }
  }, [round])

  const search = (): void => {
    const digest = text.trim()
    if (/^[\w-]{22}$/.test(digest)) onChosen(digest)
    else setProblem('A digest has 22 characters: letters, digits, - and _.')
  }
  return (
    <section class="card" aria-labelledby="tenants-title">
      <h2 id="tenants-title">Tenants with sessions</h2>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault()
          search()
        }}
      >
        <label class="grow">
          Tenant's digest
          <input
            type="text"
            value={text}
            placeholder="22 characters, as a session shows it"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            maxLength={64}
            aria-describedby="tenant-problem"
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary">
          Show its use
        </button>
        <button type="button" onClick={() => setRound((before) => before + 1)}>
          Refresh
        </button>
      </form>
      <p id="tenant-problem" class="problem" role="alert">
        {problem}
      </p>
      <List {...{ outcome, onChosen }} />
    </section>
  )
}

/** One after the other: a large tenant takes the store as long as some hundred turns. */
const readUses = async (isStale: () => boolean): Promise<readonly TenantUse[]> => {
  const uses: TenantUse[] = []
  for (const tenant of await readTenants(mostTenants)) {
    if (isStale()) break
    uses.push(await readTenant(tenant))
  }
  return uses.toSorted((a, b) => b.storedBytes - a.storedBytes)
}

const List = (props: { readonly outcome: Outcome; readonly onChosen: (tenant: string) => void }): VNode => {
  const { outcome, onChosen } = props
  if (outcome === undefined) return <p class="loading">Loading…</p>
  if ('problem' in outcome)
    return (
      <p class="problem" role="alert">
        {outcome.problem}
      </p>
    )
  if (outcome.uses.length === 0) return <p class="empty">No tenant has a session.</p>
  return (
    <Table
      caption={`${count(outcome.uses.length)} ${outcome.uses.length === 1 ? 'tenant' : 'tenants'}; any other is found by its digest`}
      columns={columnsFor(onChosen)}
      rows={outcome.uses}
      keyOf={({ tenant }) => tenant}
    />
  )
}

const columnsFor = (onChosen: (tenant: string) => void): readonly Column<TenantUse>[] => [
  {
    title: 'Tenant',
    cell: ({ tenant }) => (
      <button type="button" class="link" title="Show its use and its limits" onClick={() => onChosen(tenant)}>
        <code>{tenant}</code>
      </button>
    ),
  },
  { title: 'Sessions', isNumber: true, cell: (use) => sessionsOf(use) },
  { title: 'Named', isNumber: true, cell: ({ namedSessions }) => count(namedSessions) },
  { title: 'Stored KV', isNumber: true, cell: ({ storedBytes }) => bytes(storedBytes) },
  { title: 'Turns', isNumber: true, cell: ({ turns }) => count(turns) },
  { title: 'Prompt tokens', isNumber: true, cell: ({ tokens }) => count(tokens.prompt) },
  { title: 'Reused', isNumber: true, cell: ({ tokens }) => share(tokens.cached, tokens.prompt) },
]

/** `12`, or `10,000 and more`. */
export const sessionsOf = ({ sessions, complete }: TenantUse): string =>
  `${count(sessions)}${complete ? '' : ' and more'}`
