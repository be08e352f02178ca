import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { AdminError } from './admin-error.ts'

/** What of a request decides on access. Headers by lower-case name. */
export interface ApiRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Who may use the operators' API. */
export interface ApiAccess {
  /** @throws AdminError `unauthorized`, `admin_token_required`, `foreign_host` or `cross_site` */
  check(request: ApiRequest): void
  /** The cookie of a browser that has presented the token. @throws AdminError `unauthorized` */
  logIn(token: string, request: ApiRequest): string
  /** The cookie that ends it. */
  logOut(): string
}

const cookieName = 'context_cache_console'
const cookieSeconds = 12 * 3600
/** A page of another origin cannot send it without asking first, which nothing here allows. */
export const changeHeader = 'x-requested-with'

/**
 * With a token each request presents it, or a cookie made from it: any gateway with the token accepts the cookie. Without
 * one, only a server on a loopback address answers, under names that no foreign page's name can be made to lead to.
 */
export const createApiAccess = (options: {
  readonly token: string | undefined
  /** Whether only processes of this machine reach the server. */
  readonly isLoopback: boolean
  /** Milliseconds since 1970. */
  readonly nowMs?: () => number
}): ApiAccess => {
  const { token, isLoopback, nowMs = Date.now } = options

  const macOf = (key: string, expiry: string): string =>
    createHmac('sha256', key).update(`console\n${expiry}`).digest('base64url')

  const isCookieValid = (key: string, cookie: string): boolean => {
    const [expiry = '', mac = ''] = cookie.split('.')
    return isEqual(mac, macOf(key, expiry)) && Number(expiry) > nowMs()
  }

  const checkChange = ({ method, headers }: ApiRequest): void => {
    if (method === 'GET' || method === 'HEAD') return
    const site = headers['sec-fetch-site'] ?? 'none'
    if (headers[changeHeader] !== 'context-cache' || (site !== 'same-origin' && site !== 'none'))
      throw new AdminError('cross_site')
  }

  return {
    check: (request) => {
      checkChange(request)
      if (token === undefined) {
        if (!isLoopback) throw new AdminError('admin_token_required')
        if (!isLocalName(textOf(request.headers['host']))) throw new AdminError('foreign_host')
        return
      }
      const [, bearer = ''] = /^Bearer +(\S+)$/i.exec(textOf(request.headers['authorization'])) ?? []
      const cookie = cookieOf(textOf(request.headers['cookie']))
      if (!isEqual(bearer, token) && !isCookieValid(token, cookie)) throw new AdminError('unauthorized')
    },
    logIn: (presented, request) => {
      checkChange(request)
      if (token === undefined || !isEqual(presented, token)) throw new AdminError('unauthorized')
      const expiry = String(nowMs() + cookieSeconds * 1000)
      const secure = request.headers['x-forwarded-proto'] === 'https' ? '; Secure' : ''
      // Without a path: the browser takes the folder of the URL, whatever prefix a proxy puts before it.
      return `${cookieName}=${expiry}.${macOf(token, expiry)}; HttpOnly; SameSite=Strict; Max-Age=${cookieSeconds}${secure}`
    },
    logOut: () => `${cookieName}=; HttpOnly; SameSite=Strict; Max-Age=0`,
  }
}

/** Digests, so that the time tells nothing of length or content. */
const isEqual = (given: string, expected: string): boolean =>
  timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'))

const textOf = (header: string | readonly string[] | undefined): string => (typeof header === 'string' ? header : '')

const cookieOf = (header: string): string =>
  header
    .split(/; */)
    .find((pair) => pair.startsWith(`${cookieName}=`))
    ?.slice(cookieName.length + 1) ?? ''

/** An IP address or localhost: DNS gives no other page's name to them. */
const isLocalName = (host: string): boolean => {
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || isIP(name) !== 0
}
