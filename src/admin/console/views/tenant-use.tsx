import { eraseTenant, readTenant, readTenantLimits, wordsOf } from '../api.ts'
import type { TenantLimits, TenantUse } from '../contract.ts'
import { bytes, count, share } from '../format.ts'
import { Facts } from '../tile.tsx'
import { h, type VNode } from '../vendor/preact.js'
import { useEffect, useRef, useState } from '../vendor/preact-hooks.js'
import { ConfirmButton } from './confirm-button.tsx'
import { sessionsOf } from './tenant-list.tsx'

/** Calls of one erasure. Each deletes what it can in 1.5 seconds. */
const mostCalls = 200

/** One tenant: what it uses, what it may use, and its erasure. */
export const TenantUseView = (props: { readonly tenant: string; readonly onClosed: (why: string) => void }): VNode => {
  const { tenant, onClosed } = props
  const [found, setFound] = useState<{ readonly use: TenantUse; readonly limits: TenantLimits }>()
  const [problem, setProblem] = useState('')
  const [erased, setErased] = useState<number>()
  const title = useRef<HTMLHeadingElement>(null)

  useEffect(() => {
    let isStale = false
    Promise.all([readTenant(tenant), readTenantLimits()]).then(
      ([use, limits]) => !isStale && setFound({ use, limits }),
      (error: unknown) => !isStale && setProblem(wordsOf(error)),
    )
    title.current?.focus()
    return () => {
      isStale = true
    }
  }, [tenant])

  const erase = async (): Promise<void> => {
    let [sessions, cachedAnswers] = [0, 0]
    setErased(0)
    try {
      for (let calls = 0; calls < mostCalls; calls += 1) {
        const step = await eraseTenant(tenant)
        sessions += step.sessions
        cachedAnswers += step.cachedAnswers
        setErased(sessions)
        if (!step.complete) continue
        const answers = `${count(cachedAnswers)} cached answers of this gateway`
        onClosed(`Tenant ${tenant} is erased: sessions ${count(sessions)}, ${answers}.`)
        return
      }
      setProblem('Sessions begin as fast as they are erased: take the credential away first.')
    } catch (error) {
      setProblem(wordsOf(error))
    }
    setErased(undefined)
  }
  return (
    <section class="card" aria-labelledby="tenant-title">
      <div class="row spread">
        <h2 id="tenant-title" ref={title} tabIndex={-1}>
          Tenant <code class="wrap">{tenant}</code>
        </h2>
        <div class="row">
          <button type="button" onClick={() => onClosed('')}>
            Back to all tenants
          </button>
          <ConfirmButton
            label="Erase tenant"
            question="Erase all that this tenant has?"
            action="Erase"
            isDisabled={erased !== undefined}
            onConfirmed={() => void erase()}
          >
            Each of its sessions ends with its KV, and its cached answers of this gateway are dropped. This cannot be
            undone, and does not keep the tenant out: take its credential away first.
          </ConfirmButton>
        </div>
      </div>
      <p role="status" class="notice">
        {erased === undefined ? '' : `Erasing… ${count(erased)} sessions so far.`}
      </p>
      <p class="problem" role="alert">
        {problem}
      </p>
      {found === undefined ? <p class="loading">{problem === '' ? 'Loading…' : ''}</p> : <UseFacts {...found} />}
    </section>
  )
}

const UseFacts = (props: { readonly use: TenantUse; readonly limits: TenantLimits }): VNode => {
  const { use, limits } = props
  const { tokens } = use
  return (
    <div class="session-facts">
      <Facts
        of={[
          ['Sessions', `${sessionsOf(use)}${limitOf(limits.maxSessions, count)}`],
          ['Of these named', count(use.namedSessions)],
          ['Stored KV', `${bytes(use.storedBytes)}${limitOf(limits.maxStoredBytes, bytes)}`],
          ['Turns at a time', limits.maxTurns === undefined ? 'no limit' : `at most ${count(limits.maxTurns)}`],
        ]}
      />
      <Facts
        of={[
          ['Turns', count(use.turns)],
          [
            'Prompt tokens',
            `${count(tokens.prompt)}, of which ${count(tokens.cached)} reused (${share(tokens.cached, tokens.prompt)})`,
          ],
          ['Output tokens', count(tokens.output)],
        ]}
      />
    </div>
  )
}

const limitOf = (limit: number | undefined, render: (value: number) => string): string =>
  limit === undefined ? ', no limit' : ` of at most ${render(limit)}`
