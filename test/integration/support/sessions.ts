import { expect } from '@jest/globals'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { call, type HttpResponse, model } from './client.ts'
import type { Stack } from './stack.ts'

const contextView = z.strictObject({
  id: z.string().regex(/^ctx_[A-Za-z0-9_-]{32}$/),
  object: z.literal('context'),
  named_by: z.string().nullable(),
  prompts: z.int(),
  digest: z.string().length(8),
  model: z.string(),
  created_at: z.int(),
  expires_at: z.int(),
  ttl: z.int(),
  turns: z.int(),
  tokens: z.strictObject({ prompt: z.int(), output: z.int(), cached: z.int() }),
  kv: z.strictObject({
    pod: z.string().nullable(),
    stored: z.strictObject({ tokens: z.int(), bytes: z.int(), turn: z.int() }).nullable(),
    note: z.string().nullable(),
  }),
})

/** Body of `GET /v1/context/{id}`: exactly these members, and nothing of a prompt. */
export type ContextView = z.infer<typeof contextView>

export const readView = (value: unknown): ContextView => contextView.parse(value)

/** An id of the gateway's form that it never gave out. */
export const unknownId = `ctx_${'u'.repeat(32)}`

export interface TurnOptions {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: object
}

/** A prompt of so many words. */
export const prompt = (words: number): string => Array.from({ length: words }, (_, index) => `word${index}`).join(' ')

const defaultBody = { model, prompt: prompt(20), max_tokens: 2 }

/** Creates a session; by default with `POST /v1/context`. */
export const create = (stack: Stack, options: TurnOptions = {}): Promise<HttpResponse> =>
  call(`${stack.url}${options.path ?? '/v1/context'}`, {
    headers: options.headers ?? {},
    body: options.body ?? defaultBody,
  })

/** Creates a session and returns its id. @throws Error when none was created */
export const createdId = async (stack: Stack, options: TurnOptions = {}): Promise<string> => {
  const response = await create(stack, options)
  const id = response.headers.get('x-session-id')
  if (id === null) throw new Error(`no session was created: ${response.status} ${response.text}`)
  return id
}

/** A turn of a session; by default with `POST /v1/completions`. */
export const use = (stack: Stack, id: string, options: TurnOptions = {}): Promise<HttpResponse> =>
  call(`${stack.url}${options.path ?? '/v1/completions'}`, {
    headers: { 'x-session-id': id, ...options.headers },
    body: options.body ?? defaultBody,
  })

export const look = (stack: Stack, id: string): Promise<HttpResponse> => call(`${stack.url}/v1/context/${id}`)

/** @throws Error when the session does not exist */
export const view = async (stack: Stack, id: string): Promise<ContextView> => {
  const response = await look(stack, id)
  if (response.status !== 200) throw new Error(`GET of the context got ${response.status}: ${response.text}`)
  return readView(response.body)
}

export const remove = (stack: Stack, id: string): Promise<HttpResponse> =>
  call(`${stack.url}/v1/context/${id}`, { method: 'DELETE' })

export const cacheLine = ({ headers }: { readonly headers: Headers }): string | null => headers.get('x-context-cache')

/** The `error` member of a body. */
export const errorOf = (response: HttpResponse): unknown => z.object({ error: z.unknown() }).parse(response.body).error

/** Waits until the session has so many turns. */
export const untilTurns = (stack: Stack, id: string, turns: number): Promise<ContextView> =>
  eventually(async () => {
    const seen = await view(stack, id)
    expect(seen.turns).toBe(turns)
    return seen
  })

/** Waits until the KV of this turn, the session's last one, is stored. */
export const untilStored = (stack: Stack, id: string, turn: number): Promise<ContextView> =>
  eventually(async () => {
    const seen = await view(stack, id)
    expect(seen).toMatchObject({ turns: turn, kv: { stored: { turn } } })
    return seen
  })

/** Waits until the session does not exist any more. */
export const untilGone = (stack: Stack, id: string): Promise<void> =>
  eventually(async () => expect((await look(stack, id)).status).toBe(404))

/** Gives the session one more second, and waits for its end. A turn that still held it would keep it from expiring. */
export const untilExpired = async (stack: Stack, id: string): Promise<void> => {
  await call(`${stack.url}/v1/context/${id}`, { method: 'PATCH', body: { ttl: 1 } })
  await untilGone(stack, id)
}

/**
 * Creates sessions until the first turn of one is stored, and returns its id. The others are removed: no KV is stored
 * in a slot that is being emptied or is in use, or where a busy machine takes longer than a create waits for its slot.
 */
export const storedSession = (stack: Stack, options: TurnOptions = {}): Promise<string> =>
  eventually(async () => {
    const id = await createdId(stack, options)
    const { kv } = await eventually(async () => {
      const seen = await view(stack, id)
      expect(seen.kv.stored ?? seen.kv.note).not.toBeNull()
      return seen
    })
    if (kv.stored === null) await remove(stack, id)
    expect(kv.stored).toMatchObject({ turn: 1 })
    return id
  })
