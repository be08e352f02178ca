import type { Pool } from '../contract.ts'
import { h, type VNode } from '../vendor/preact.js'
import { useState } from '../vendor/preact-hooks.js'
import { SessionLifeView } from './session-life.tsx'
import { SessionList } from './session-list.tsx'
import { SessionSearch } from './session-search.tsx'

/** Search by id, the list without ids, and the life of the session that was found. */
export const SessionsView = (props: { readonly now: string; readonly pools: readonly Pool[] }): VNode => {
  // Lives here alone: not in the URL, which browsers keep, and not in the document.
  const [id, setId] = useState<string>()
  const [notice, setNotice] = useState('')
  const models = [...new Set(props.pools.flatMap(({ pods }) => pods.flatMap((pod) => pod.models)))].sort()
  return (
    <div class="stack">
      <SessionSearch
        onFound={(found) => {
          setNotice('')
          setId(found)
        }}
      />
      <p role="status" class="notice">
        {notice}
      </p>
      {id === undefined ? (
        <SessionList now={new Date(props.now)} models={models} />
      ) : (
        <SessionLifeView
          key={id}
          id={id}
          now={new Date(props.now)}
          onClosed={(why) => {
            setNotice(why)
            setId(undefined)
          }}
        />
      )}
    </div>
  )
}
