import type { Overview } from '../contract.ts'
import { duration } from '../format.ts'
import { Sign } from '../tile.tsx'
import { h, type VNode } from '../vendor/preact.js'

/** What is wrong, in the gateway's words; or that nothing is. */
export const Warnings = ({ overview }: { readonly overview: Overview }): VNode => {
  const { warnings, store } = overview
  if (warnings.length === 0 && store.available)
    return (
      <p class="verdict good">
        <span aria-hidden="true">✓</span> No warnings. The session store ({store.kind}) answers.
      </p>
    )
  return (
    <section class="verdict bad" aria-labelledby="warnings-title">
      <h2 id="warnings-title">
        <Sign>Attention: </Sign> {warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`}
      </h2>
      <ul>
        {store.available ? null : (
          <li>
            <b>The session store ({store.kind}) does not answer.</b> Turns go on without their KV.
          </li>
        )}
        {warnings.map(({ kind, subject, text, sinceSeconds }) => (
          <li key={`${kind} ${subject}`}>
            <span class="prose">{text}</span>{' '}
            <span class="muted">
              <code>{kind}</code>, for {duration(Math.round(sinceSeconds))}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
