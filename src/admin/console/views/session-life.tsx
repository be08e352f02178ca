import { ApiError, deleteSession, readSession, wordsOf } from '../api.ts'
import type { SessionLife } from '../contract.ts'
import { ago, bytes, count, dateAndTime, share, until } from '../format.ts'
import { Facts } from '../tile.tsx'
import { h, type VNode } from '../vendor/preact.js'
import { useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact-hooks.js'
import { ConfirmButton } from './confirm-button.tsx'
import { Timeline } from './timeline.tsx'

const refreshMs = 2_000

/** One session: what it is, and what happened to it. Read again every two seconds. */
export const SessionLifeView = (props: {
  readonly id: string
  readonly now: Date
  readonly onClosed: (why: string) => void
}): VNode => {
  const { id, now, onClosed } = props
  const [life, setLife] = useState<SessionLife>()
  const [problem, setProblem] = useState('')
  const title = useRef<HTMLHeadingElement>(null)

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isStale = false
    const refresh = async (): Promise<void> => {
      try {
        const found = await readSession(id)
        if (isStale) return
        setLife(found)
        setProblem('')
      } catch (error) {
        if (isStale) return
        if (error instanceof ApiError && error.status === 404) {
          onClosed('The session has ended.')
          return
        }
        setProblem(wordsOf(error))
      }
      timer = setTimeout(() => void refresh(), refreshMs)
    }
    void refresh()
    return () => {
      isStale = true
      clearTimeout(timer)
    }
  }, [id])
  const isThere = life !== undefined
  useLayoutEffect(() => title.current?.focus(), [isThere])

  if (life === undefined) return <p class="loading">{problem === '' ? 'Loading…' : problem}</p>
  return (
    <section class="card" aria-labelledby="life-title">
      <div class="row spread">
        <h2 id="life-title" ref={title} tabIndex={-1}>
          Session <code>{life.digest}</code>
        </h2>
        <div class="row">
          <button type="button" onClick={() => onClosed('')}>
            Back to all sessions
          </button>
          <ConfirmButton
            label="Delete session"
            question={
              <span>
                Delete session <code>{life.digest}</code>?
              </span>
            }
            action="Delete"
            onConfirmed={async () => {
              try {
                await deleteSession(id)
                onClosed(`Session ${life.digest} is deleted.`)
              } catch (error) {
                setProblem(wordsOf(error))
              }
            }}
          >
            Its KV is removed from pods and store. Its client's next turn gets an error or starts without a cache. This
            cannot be undone.
          </ConfirmButton>
        </div>
      </div>
      <p class="problem" role="alert">
        {problem}
      </p>
      <SessionFacts life={life} now={now} />
      <h3>Timeline</h3>
      <Timeline events={life.timeline} />
    </section>
  )
}

const SessionFacts = ({ life, now }: { readonly life: SessionLife; readonly now: Date }): VNode => {
  const { tokens, kv } = life
  return (
    <div class="session-facts">
      <Facts
        of={[
          ['Model', life.model],
          ['Named by', life.namedBy ?? 'nothing that this gateway saw'],
          [
            'Tenant',
            <code key="tenant" class="wrap">
              {life.tenant}
            </code>,
          ],
          [
            'Created',
            <time
              key="created"
              dateTime={life.createdAt}
            >{`${dateAndTime(life.createdAt)} (${ago(life.createdAt, now)})`}</time>,
          ],
          [
            'Expires',
            <time
              key="expires"
              dateTime={life.expiresAt}
            >{`${dateAndTime(life.expiresAt)} (${until(life.expiresAt, now)})`}</time>,
          ],
        ]}
      />
      <Facts
        of={[
          ['Turns', life.prompts > 1 ? `${count(life.turns)} of ${count(life.prompts)} prompts` : count(life.turns)],
          [
            'Prompt tokens',
            `${count(tokens.prompt)}, of which ${count(tokens.cached)} reused (${share(tokens.cached, tokens.prompt)})`,
          ],
          ['Output tokens', count(tokens.output)],
          ['Pod', life.pod === null ? 'none holds its KV' : <code key="pod">{life.pod}</code>],
          ['Stored KV', kv === null ? 'none' : `${count(kv.tokens)} tokens, ${bytes(kv.bytes)}, of turn ${kv.turn}`],
          ...(life.kvStatus === null ? [] : [['KV status', <code key="status">{life.kvStatus}</code>] as const]),
        ]}
      />
    </div>
  )
}
