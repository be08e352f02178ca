import type { Overview, Sample, SessionLife, SessionPage, TenantErasure, TenantLimits, TenantUse } from './contract.ts'

/** The API lies beside the page, whatever prefix a proxy puts before both. */
const base = new URL('../', document.baseURI)

/** A refusal of the gateway, in its words; status 0: no answer at all. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** An error as a reader sees it. */
export const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const ask = async (
  path: string,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<Response> => {
  const answer = await fetch(new URL(path, base), {
    ...init,
    headers: { 'x-requested-with': 'context-cache', ...init.headers },
    credentials: 'same-origin',
    cache: 'no-store',
  }).catch(() => {
    throw new ApiError(0, 'The gateway does not answer.')
  })
  if (answer.ok) return answer
  throw new ApiError(answer.status, (await messageOf(answer)) ?? `The gateway answered ${answer.status}.`)
}

const messageOf = async (answer: Response): Promise<string | undefined> => {
  try {
    const { error } = (await answer.json()) as { readonly error?: { readonly message?: string } }
    return error?.message
  } catch {
    return undefined
  }
}

const read = async <T>(path: string): Promise<T> => (await ask(path)).json() as Promise<T>

const sessionPath = (id: string): string => `api/sessions/${encodeURIComponent(id)}`

/** The URL of the live events. */
export const eventsUrl = new URL('api/events', base)

/** What the gateway does now and did in the last ten minutes. */
export const readOverview = (): Promise<Overview & { readonly samples: readonly Sample[] }> => read('api/overview')

/** Which sessions a list shows; empty: all. */
export interface SessionFilter {
  readonly model: string
  /** The tenant's digest, or how it begins. */
  readonly tenant: string
}

/** One page of the list. */
export const readSessions = ({ model, tenant }: SessionFilter, after: string | null): Promise<SessionPage> => {
  const query = new URLSearchParams({ limit: '50' })
  if (model !== '') query.set('model', model)
  if (tenant !== '') query.set('tenant', tenant)
  if (after !== null) query.set('after', after)
  return read(`api/sessions?${query}`)
}

/** @throws ApiError 404: nobody has a session with this id */
export const readSession = (id: string): Promise<SessionLife> => read(sessionPath(id))

/** Ends a session; its KV is removed. */
export const deleteSession = async (id: string): Promise<void> => {
  await ask(sessionPath(id), { method: 'DELETE' })
}

const tenantPath = (tenant: string): string => `api/tenants/${encodeURIComponent(tenant)}`

/** What a tenant uses. @throws ApiError 404: no digest */
export const readTenant = (tenant: string): Promise<TenantUse> => read(tenantPath(tenant))

/** The digests of up to `most` tenants, of those that have a session on the first page of all. */
export const readTenants = async (most: number): Promise<readonly string[]> => {
  const { data } = await read<SessionPage>('api/sessions?limit=100')
  return [...new Set(data.map(({ tenant }) => tenant))].slice(0, most)
}

/** What each tenant may use. */
export const readTenantLimits = async (): Promise<TenantLimits> =>
  (await read<{ readonly tenant: { readonly limits: TenantLimits } }>('config')).tenant.limits

/** Ends all that a tenant has, as far as one call comes. */
export const eraseTenant = async (tenant: string): Promise<TenantErasure> =>
  (await ask(tenantPath(tenant), { method: 'DELETE' })).json() as Promise<TenantErasure>

const signedIn = 'context-cache-console'

/** Whether this browser has presented a token, of which scripts cannot see the cookie. */
export const hasSignedIn = (): boolean => localStorage.getItem(signedIn) !== null

/** Trades the operators' token for a cookie. @throws ApiError 401: wrong token */
export const signIn = async (token: string): Promise<void> => {
  await ask('api/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  localStorage.setItem(signedIn, 'yes')
}

/** Ends what {@link signIn} began. */
export const signOut = async (): Promise<void> => {
  localStorage.removeItem(signedIn)
  await ask('api/session', { method: 'DELETE' })
}
