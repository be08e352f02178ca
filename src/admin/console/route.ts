import { useEffect, useState } from './vendor/preact-hooks.js'

/** The views by the hash of the page's URL. The id of a session never stands there, since browsers keep URLs. */
export const views = [
  { hash: '#/', name: 'Overview' },
  { hash: '#/pods', name: 'Pods' },
  { hash: '#/sessions', name: 'Sessions' },
  { hash: '#/tenants', name: 'Tenants' },
] as const

/** The name of a view. */
export type View = (typeof views)[number]['name']

const current = (): View => views.find(({ hash }) => hash === location.hash)?.name ?? 'Overview'

/** The view that the URL names; an unknown one is the overview. */
export const useView = (): View => {
  const [view, setView] = useState(current)
  useEffect(() => {
    const changed = (): void => setView(current())
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return view
}
