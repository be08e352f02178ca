import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../../test/support/eventually.ts'
import { type AgentName, agentNames, agentRequests } from '../fleet/agents.ts'
import type { Ledger, RequestKind } from './ledger.ts'
import type { SoakStack } from './soak-stack.ts'

/** Clients of a soak. Each goes on until `until`, and then finishes what it does. */
export interface Traffic {
  readonly stack: Pick<SoakStack, 'url' | 'model'>
  readonly ledger: Ledger
  readonly until: AbortSignal
}

export const tenants = ['soak-tenant-1', 'soak-tenant-2', 'soak-tenant-3'] as const

const requestTimeoutMs = 120_000
const answerTokens = 12
/** Of the recorded sizes. */
const agentScale = 0.03
const sessionTtlSeconds = 20

/** All clients at once. Resolves when each has finished. */
export const sendTraffic = async (traffic: Traffic): Promise<void> => {
  const clients = [
    ...tenants.flatMap((tenant) => [converse(traffic, tenant), converse(traffic, tenant)]),
    ...agentNames.map((agent, index) => workAs(traffic, agent, tenants[index % tenants.length] ?? tenants[0])),
    askWithoutSession(traffic),
    readSlowly(traffic),
    leaveEarly(traffic),
    manage(traffic),
    sendNonsense(traffic),
  ]
  await Promise.all(clients)
}

interface Asked {
  readonly kind: RequestKind
  readonly path: string
  readonly tenant: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  /** Whether the status is that of an answer. Default: 200. */
  readonly isAnswered?: (status: number) => boolean
  /** How a streamed answer ends. Default: it need not be whole. */
  readonly end?: string
}

/** Undefined: it failed, and the ledger knows. */
const ask = async ({ stack, ledger }: Traffic, asked: Asked): Promise<Response | undefined> => {
  const fromMs = performance.now()
  const { kind, path, tenant, method = 'POST', headers, body, isAnswered = (status) => status === 200, end } = asked
  try {
    const response = await fetch(`${stack.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${tenant}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    const text = await response.text()
    const isWhole = end === undefined || text.includes(end)
    const isGood = isAnswered(response.status) && isWhole
    ledger.record(kind, fromMs, isGood ? undefined : `${path} ${response.status} ${text.slice(-200)}`)
    if (kind === 'turn' && isGood) ledger.sawCache(response.headers.get('x-context-cache'))
    return isGood ? response : undefined
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : ''
    ledger.record(kind, fromMs, `${path} ${error instanceof Error ? error.message : String(error)} ${cause}`)
    return undefined
  }
}

const pause = (mostMs: number): Promise<void> => delay(Math.random() * mostMs)
const wordsOf = (count: number): string => Array.from({ length: count }, (_, at) => `word${at % 97}`).join(' ')

/** Creates sessions and uses them, streamed and not; deletes one half, leaves the other to its time. */
const converse = async (traffic: Traffic, tenant: string): Promise<void> => {
  const { stack, until } = traffic
  while (!until.aborted) {
    const key = randomUUID()
    let text = `Conversation ${key}. ${wordsOf(300)}`
    const bodyOf = (stream: boolean): string =>
      JSON.stringify({ model: stack.model, prompt: text, max_tokens: answerTokens, stream })
    const headers = { 'idempotency-key': key, 'x-session-ttl': String(sessionTtlSeconds) }
    // As SDKs do.
    let created: Response | undefined
    for (let tries = 0; tries < 3 && created === undefined; tries += 1) {
      created = await ask(traffic, { kind: 'create', path: '/v1/context', tenant, headers, body: bodyOf(false) })
      if (created === undefined) await pause(2_000)
    }
    const id = created?.headers.get('x-session-id')
    if (!id) continue
    for (let turn = 0; turn < 4; turn += 1) {
      await pause(1_500)
      text += ` Turn ${turn}. ${wordsOf(40)}`
      const isStream = Math.random() < 0.5
      const headersOfTurn = { 'x-session-id': id, ...(turn === 2 ? { 'routing-strategy': 'round-robin' } : {}) }
      await ask(traffic, {
        kind: 'turn',
        path: '/v1/completions',
        tenant,
        headers: headersOfTurn,
        body: bodyOf(isStream),
        end: isStream ? 'data: [DONE]' : '}',
      })
    }
    const isAnswered = (status: number): boolean => status === 200 || status === 404
    if (Math.random() < 0.5)
      await ask(traffic, { kind: 'manage', path: `/v1/context/${id}`, tenant, method: 'DELETE', isAnswered })
  }
}

const ends: Readonly<Record<AgentName, string>> = {
  codex: 'response.completed',
  'claude-code': 'message_stop',
  opencode: 'data: [DONE]',
}

/** Sends what an agent sends, under its own names. */
const workAs = async (traffic: Traffic, agent: AgentName, tenant: string): Promise<void> => {
  const { stack, until } = traffic
  while (!until.aborted) {
    const name = randomUUID()
    for (let turn = 1; turn <= 4 && !until.aborted; turn += 1) {
      const history = { model: stack.model, name, seed: 'soak', turn, scale: agentScale }
      const requests = agentRequests(agent, { ...history, messageLength: 200, answerLength: 60 })
      await Promise.all(
        requests.map(({ path, headers, body }) =>
          ask(traffic, {
            kind: 'turn',
            path,
            tenant,
            headers,
            body: JSON.stringify({ ...JSON.parse(body), [limitOf(path)]: answerTokens }),
            end: ends[agent],
          }),
        ),
      )
      await pause(2_000)
    }
  }
}

const limitOf = (path: string): string => (path === '/v1/responses' ? 'max_output_tokens' : 'max_tokens')

const plainBody = ({ stack }: Traffic, stream: boolean): string =>
  JSON.stringify({ model: stack.model, prompt: `Plain ${wordsOf(50)}`, max_tokens: answerTokens, stream })

const askWithoutSession = async (traffic: Traffic): Promise<void> => {
  while (!traffic.until.aborted) {
    const body = plainBody(traffic, true)
    await ask(traffic, { kind: 'plain', path: '/v1/completions', tenant: tenants[0], body, end: 'data: [DONE]' })
    await pause(1_000)
  }
}

/** Takes its answer a piece a second. */
const readSlowly = async (traffic: Traffic): Promise<void> => {
  const { stack, ledger, until } = traffic
  while (!until.aborted) {
    const fromMs = performance.now()
    const what = await withName(stack, 'slow', plainBody(traffic, true), async (response) => {
      for await (const _piece of response.body ?? []) await delay(1_000)
    })
    ledger.record('plain', fromMs, what)
  }
}

/** Leaves before, at and during the answers of turns. */
const leaveEarly = async ({ stack, until, ...traffic }: Traffic): Promise<void> => {
  while (!until.aborted) {
    const leaving = AbortSignal.timeout(Math.ceil(Math.random() * 400))
    const body = plainBody({ stack, until, ...traffic }, true)
    await withName(stack, `left-${Math.floor(Math.random() * 5)}`, body, (response) => response.text(), leaving)
    await pause(500)
  }
}

/** A turn of a named conversation; resolves to how it failed. */
const withName = async (
  stack: Traffic['stack'],
  name: string,
  body: string,
  read: (response: Response) => Promise<unknown>,
  signal: AbortSignal = AbortSignal.timeout(requestTimeoutMs),
): Promise<string | undefined> => {
  try {
    const headers = { authorization: `Bearer ${tenants[1]}`, 'content-type': 'application/json', 'thread-id': name }
    const response = await fetch(`${stack.url}/v1/completions`, { method: 'POST', headers, body, signal })
    await read(response)
    return response.status === 200 ? undefined : `${name} ${response.status}`
  } catch (error) {
    return `${name} ${error instanceof Error ? error.message : String(error)}`
  }
}

const manage = async (traffic: Traffic): Promise<void> => {
  while (!traffic.until.aborted) {
    for (const tenant of tenants)
      await ask(traffic, { kind: 'manage', path: '/v1/context?limit=100', tenant, method: 'GET' })
    await pause(2_000)
  }
}

/** What no client should send gets a 4xx. */
const sendNonsense = async (traffic: Traffic): Promise<void> => {
  const bodies = ['{', '[]', `{"prompt": ${'['.repeat(200)}`, '{"prompt": 7}']
  const isAnswered = (status: number): boolean => status >= 400 && status < 500
  while (!traffic.until.aborted) {
    const body = bodies[Math.floor(Math.random() * bodies.length)] ?? '{'
    await ask(traffic, { kind: 'create', path: '/v1/context', tenant: tenants[2], body, isAnswered })
    await pause(2_000)
  }
}

/** Deletes what is left of all tenants, so that nothing has an owner. What the last fault refused is asked for again. */
export const deleteAll = async ({ url }: Traffic['stack']): Promise<void> => {
  for (const tenant of tenants) {
    const headers = { authorization: `Bearer ${tenant}` }
    const isEmpty = async (): Promise<boolean> => {
      const response = await fetch(`${url}/v1/context?limit=100`, { headers })
      if (!response.ok) return false
      const page = (await response.json()) as {
        readonly data: readonly { readonly id: string }[]
        readonly has_more: boolean
      }
      await Promise.all(page.data.map(({ id }) => fetch(`${url}/v1/context/${id}`, { method: 'DELETE', headers })))
      return page.data.length === 0 && !page.has_more
    }
    // The report has what is left.
    await eventually(isEmpty, { timeoutMs: 60_000 }).catch(() => undefined)
  }
}
