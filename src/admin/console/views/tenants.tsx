import { h, type VNode } from '../vendor/preact.js'
import { useState } from '../vendor/preact-hooks.js'
import { TenantList } from './tenant-list.tsx'
import { TenantUseView } from './tenant-use.tsx'

/** Search by digest, the tenants that have sessions, and one tenant with its erasure. */
export const TenantsView = (): VNode => {
  const [tenant, setTenant] = useState<string>()
  const [notice, setNotice] = useState('')
  const show = (next: string | undefined, why: string): void => {
    setTenant(next)
    setNotice(why)
  }
  return (
    <div class="stack">
      <p role="status" class="notice">
        {notice}
      </p>
      {tenant === undefined ? (
        <TenantList onChosen={(chosen) => show(chosen, '')} />
      ) : (
        <TenantUseView key={tenant} tenant={tenant} onClosed={(why) => show(undefined, why)} />
      )}
    </div>
  )
}
