import { hasSignedIn, signOut } from './api.ts'
import { type Connection, type LiveData, useLive } from './live.ts'
import { useView, type View, views } from './route.ts'
import { h, type VNode } from './vendor/preact.js'
import { useLayoutEffect, useRef, useState } from './vendor/preact-hooks.js'
import { OverviewView } from './views/overview.tsx'
import { PodsView } from './views/pods.tsx'
import { SessionsView } from './views/sessions.tsx'
import { SignInView } from './views/sign-in.tsx'
import { TenantsView } from './views/tenants.tsx'

/** The whole page. */
export const App = (): VNode => {
  const [epoch, setEpoch] = useState(0)
  const { connection, data } = useLive(epoch)
  const view = useView()
  const again = (): void => setEpoch((before) => before + 1)
  if (connection.kind === 'signed-out')
    return (
      <Page connection={connection} data={undefined} view={undefined} onSignedOut={again}>
        <SignInView onSignedIn={again} />
      </Page>
    )
  return (
    <Page connection={connection} data={data} view={view} onSignedOut={again}>
      <Content connection={connection} data={data} view={view} />
    </Page>
  )
}

const Content = (props: {
  readonly connection: Connection
  readonly data: LiveData | undefined
  readonly view: View
}): VNode => {
  const { connection, data, view } = props
  const title = useRef<HTMLHeadingElement>(null)
  const isFirst = useRef(true)
  // Before the view is painted: a focus that moves later would take it from the field in which somebody types already.
  useLayoutEffect(() => {
    document.title = `${view} – Context Cache Gateway`
    // Whoever follows a link hears where it led; whoever opens the page starts at its top.
    if (!isFirst.current) title.current?.focus()
    isFirst.current = false
  }, [view])
  return (
    <div>
      <h1 ref={title} tabIndex={-1}>
        {view}
      </h1>
      {connection.kind === 'refused' ? (
        <p class="verdict bad" role="alert">
          {connection.message}
        </p>
      ) : data === undefined ? (
        <p class="loading">
          {connection.kind === 'reconnecting' ? 'The gateway does not answer. Trying again…' : 'Loading…'}
        </p>
      ) : view === 'Overview' ? (
        <OverviewView overview={data.overview} samples={data.samples} />
      ) : view === 'Pods' ? (
        <PodsView pools={data.pools} />
      ) : view === 'Sessions' ? (
        <SessionsView now={data.overview.now} pools={data.pools ?? []} />
      ) : (
        <TenantsView />
      )}
    </div>
  )
}

const Page = (props: {
  readonly connection: Connection
  readonly data: LiveData | undefined
  /** Undefined: no view can be chosen. */
  readonly view: View | undefined
  readonly onSignedOut: () => void
  readonly children: VNode
}): VNode => {
  const { connection, data, view, children } = props
  return (
    <div class="page">
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main')?.focus()}>
        Skip to the content
      </button>
      <header>
        <p class="brand">
          Context Cache Gateway <span class="muted">{data?.overview.version}</span>
        </p>
        {view === undefined ? null : (
          <nav aria-label="Views">
            {views.map(({ hash, name }) => (
              <a key={name} href={hash} aria-current={name === view ? 'page' : undefined}>
                {name}
              </a>
            ))}
          </nav>
        )}
        <p class={`connection ${connection.kind}`} role="status">
          {words[connection.kind]}
        </p>
        {view === undefined || !hasSignedIn() ? null : <SignOut onSignedOut={props.onSignedOut} />}
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

const words: Readonly<Record<Connection['kind'], string>> = {
  connecting: '○ Connecting…',
  live: '● Live',
  reconnecting: '▲ Reconnecting… numbers are old',
  'signed-out': '○ Signed out',
  refused: '▲ Refused',
}

const SignOut = ({ onSignedOut }: { readonly onSignedOut: () => void }): VNode => (
  <button
    type="button"
    class="quiet"
    onClick={() => {
      void signOut().then(onSignedOut, onSignedOut)
    }}
  >
    Sign out
  </button>
)
