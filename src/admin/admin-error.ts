const errors = {
  unauthorized: [401, 'Present the operators’ token (listen.admin.token): Authorization: Bearer <token>.'],
  admin_token_required: [
    403,
    'The admin port is bound to more than a loopback address: set listen.admin.token or listen.admin.tokenFile (CTX_LISTEN_ADMIN_TOKEN, CTX_LISTEN_ADMIN_TOKEN_FILE), and present it.',
  ],
  foreign_host: [403, 'Without listen.admin.token the API answers under an IP address or localhost alone.'],
  cross_site: [403, 'A request that changes something needs the header x-requested-with: context-cache.'],
  unknown_session: [404, 'No live session has this id.'],
  unknown_path: [404, 'No such page. / lists them.'],
  method_not_allowed: [405, 'The page has no such method.'],
  invalid_query: [400, 'limit is 1 to 100, tenant 22 characters of a tenant’s digest.'],
  invalid_body: [400, 'The body is {"token": "…"} and at most 2 KiB.'],
  session_store_unavailable: [503, 'The session store does not answer. Try again, and see /readyz.'],
  too_many_streams: [503, 'Too many consoles are open.'],
  internal_error: [503, 'The page could not be made; the log says why.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type AdminErrorCode = keyof typeof errors

/** A refusal of the operators' API, as its client sees it. */
export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly code: AdminErrorCode
  readonly status: number

  constructor(code: AdminErrorCode) {
    const [status, message] = errors[code]
    super(message)
    this.code = code
    this.status = status
  }
}
