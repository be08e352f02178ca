import { call } from '../../integration/support/client.ts'
import { type ContextView, readView } from '../../integration/support/sessions.ts'
import type { Stack } from '../../integration/support/stack.ts'
import { eventually } from '../../support/eventually.ts'
import { vllmFleet } from './fleet.ts'
import { type CompletionReport, readCompletion } from './pod.ts'

/** A completed turn. */
export interface SessionTurn extends CompletionReport {
  readonly id: string
  /** `x-context-cache` */
  readonly cache: string
}

/** A client of the gateway: one tenant. */
export interface SessionClient {
  create(prompt: string, options?: TurnOptions): Promise<SessionTurn>
  use(id: string, prompt: string, options?: TurnOptions): Promise<SessionTurn>
  view(id: string): Promise<ContextView>
  /** False for a session that is gone, and while the gateway cannot tell. */
  exists(id: string): Promise<boolean>
  /** Waits until this turn has ended and the session has stored KV, or a reason why not. */
  settled(id: string, turns: number): Promise<ContextView>
  remove(id: string): Promise<void>
}

export interface TurnOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>>
}

/** A header that sends a turn to the other pod by the second try. */
export const anywhere = { 'routing-strategy': 'round-robin' }

export const sessionClient = (stack: Stack, credential = 'test-key'): SessionClient => {
  const authorization = `Bearer ${credential}`
  const turn = async (path: string, prompt: string, { headers, body }: TurnOptions): Promise<SessionTurn> => {
    const answer = await call(`${stack.url}${path}`, {
      headers: { authorization, ...headers },
      body: { model: vllmFleet().servedModelName, prompt, max_tokens: 2, temperature: 0, ignore_eos: true, ...body },
    })
    if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${answer.text}`)
    return {
      ...readCompletion(answer.body),
      id: answer.headers.get('x-session-id') ?? '',
      cache: answer.headers.get('x-context-cache') ?? '',
    }
  }
  const view = async (id: string): Promise<ContextView> => {
    const answer = await call(`${stack.url}/v1/context/${id}`, { headers: { authorization } })
    if (answer.status !== 200) throw new Error(`the session was answered ${answer.status}: ${answer.text}`)
    return readView(answer.body)
  }
  return {
    create: (prompt, options = {}) => turn('/v1/context', prompt, options),
    use: (id, prompt, options = {}) =>
      turn('/v1/completions', prompt, { ...options, headers: { 'x-session-id': id, ...options.headers } }),
    view,
    exists: async (id) => (await call(`${stack.url}/v1/context/${id}`, { headers: { authorization } })).status === 200,
    settled: (id, turns) =>
      eventually(async () => {
        const seen = await view(id)
        return seen.turns >= turns && (seen.kv.stored !== null || seen.kv.note !== null) && seen
      }),
    remove: async (id) => {
      const answer = await call(`${stack.url}/v1/context/${id}`, { method: 'DELETE', headers: { authorization } })
      if (answer.status !== 200) throw new Error(`the deletion was answered ${answer.status}: ${answer.text}`)
    },
  }
}

/** Takes turns until one ran on another pod than the last; each appends to the prompt. */
export const moveToOtherPod = async (
  client: SessionClient,
  session: { readonly id: string; readonly prompt: string },
): Promise<{ readonly turn: SessionTurn; readonly prompt: string; readonly before: ContextView }> => {
  let { prompt } = session
  for (let tries = 0; tries < 3; tries += 1) {
    const before = await client.view(session.id)
    prompt = `${prompt} and further`
    const turn = await client.use(session.id, prompt, { headers: anywhere })
    const after = await client.settled(session.id, before.turns + 1)
    if (after.kv.pod !== before.kv.pod) return { turn, prompt, before }
  }
  throw new Error('round-robin never left the pod')
}

const loadedLine = /^hit; tier=(\w+); tokens=(\d+)(?:; load=([\w-]+))?$/

/** The parts of a hit's `x-context-cache`; undefined for anything else. */
export const readHit = (
  line: string,
): { readonly tier: string; readonly tokens: number; readonly load: string | undefined } | undefined => {
  const [, tier, tokens, load] = loadedLine.exec(line) ?? []
  return tier === undefined ? undefined : { tier, tokens: Number(tokens), load }
}
