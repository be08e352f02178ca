import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { readJson } from '../json/read-json.ts'
import { type TenantName, tenantNameOf } from '../sessions/session-directory.ts'
import { AdminError } from './admin-error.ts'
import { type AdminAnswer, json, text } from './admin-routes.ts'
import type { ApiAccess } from './api-access.ts'
import type { LiveEvents } from './live-events.ts'
import type { OperatorsApi } from './operators-api.ts'

const maxLoginBytes = 2_048
const login = z.object({ token: z.string() })

/** An answer; undefined: the response is a stream that has begun. */
export type ApiAnswer = AdminAnswer | undefined

/** Answers what stands below /api. @throws AdminError */
export const createApiRoutes = (parts: {
  readonly api: OperatorsApi
  readonly access: ApiAccess
  readonly live: LiveEvents
}) => {
  const { api, access, live } = parts

  const inOut = async (request: IncomingMessage, method: string): Promise<ApiAnswer> => {
    switch (method) {
      case 'POST': {
        const body = login.safeParse(readJson(await readBody(request)))
        if (!body.success) throw new AdminError('invalid_body')
        return withCookie(access.logIn(body.data.token, { method, headers: request.headers }))
      }
      case 'DELETE':
        access.check({ method, headers: request.headers })
        return withCookie(access.logOut())
      default:
        throw new AdminError('method_not_allowed')
    }
  }

  const ofTenant = async (tenant: TenantName, method: string): Promise<ApiAnswer> => {
    if (method === 'DELETE') return json(await api.eraseTenant(tenant))
    if (method !== 'GET') throw new AdminError('method_not_allowed')
    return json(await api.tenant(tenant))
  }

  return async (request: IncomingMessage, response: ServerResponse): Promise<ApiAnswer> => {
    const { headers } = request
    const { method = 'GET' } = request
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://gateway')
    if (pathname === '/api/session') return inOut(request, method)
    access.check({ method, headers })
    const id = /^\/api\/sessions\/(ctx_[A-Za-z0-9_-]{1,64})$/.exec(pathname)?.[1]
    if (id !== undefined && method === 'DELETE') return json(await api.removeSession(id))
    const tenant = tenantIn(pathname)
    if (tenant !== undefined) return ofTenant(tenant, method)
    if (method !== 'GET') throw new AdminError('method_not_allowed')
    if (id !== undefined) return json(await api.session(id))
    switch (pathname) {
      case '/api/overview':
        return json(await api.overview())
      case '/api/pods':
        return json(api.pods())
      case '/api/sessions':
        return json(await api.listSessions(searchParams))
      case '/api/events':
        await live.open(response)
        return undefined
      default:
        throw new AdminError(pathname.startsWith('/api/sessions/') ? 'unknown_session' : 'unknown_path')
    }
  }
}

const tenantIn = (pathname: string): TenantName | undefined => {
  const text = /^\/api\/tenants\/([^/]{22})$/.exec(pathname)?.[1]
  return text === undefined ? undefined : tenantNameOf(text)
}

const withCookie = (cookie: string): AdminAnswer => ({ ...text('', 204), headers: { 'set-cookie': cookie } })

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > maxLoginBytes) throw new AdminError('invalid_body')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
