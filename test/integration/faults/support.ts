import { expect } from '@jest/globals'
import { z } from 'zod'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import type { Stack } from '../support/stack.ts'

export type Answer = Awaited<ReturnType<typeof call>>

const contextView = z.object({
  id: z.string(),
  object: z.literal('context'),
  created_at: z.number(),
  expires_at: z.number(),
  ttl: z.number(),
  turns: z.number(),
  tokens: z.object({ prompt: z.number(), output: z.number(), cached: z.number() }),
  kv: z.object({
    pod: z.string().nullable(),
    stored: z.object({ tokens: z.number(), bytes: z.number(), turn: z.number() }).nullable(),
    note: z.string().nullable(),
  }),
})

/** What `GET /v1/context/{id}` tells. */
export type ContextView = z.infer<typeof contextView>

interface TurnOptions {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: Record<string, unknown>
}

export const prompt = (words: number): string => Array.from({ length: words }, (_, index) => `word${index}`).join(' ')

const defaultBody = { model, prompt: prompt(20), max_tokens: 2 }

/** `POST /v1/context`, or what else creates. */
export const create = (stack: Stack, options: TurnOptions = {}): Promise<Answer> =>
  call(`${stack.url}${options.path ?? '/v1/context'}`, {
    headers: options.headers ?? {},
    body: options.body ?? defaultBody,
  })

/** Creates a session and returns its id. @throws Error when none was created */
export const createdId = async (stack: Stack, options: TurnOptions = {}): Promise<string> => {
  const answer = await create(stack, options)
  const id = answer.headers.get('x-session-id')
  if (id === null) throw new Error(`no session was created: ${answer.status} ${answer.text}`)
  return id
}

/** A turn of a session, by `POST /v1/completions` if nothing else is said. */
export const use = (stack: Stack, id: string, options: TurnOptions = {}): Promise<Answer> =>
  call(`${stack.url}${options.path ?? '/v1/completions'}`, {
    headers: { 'x-session-id': id, ...options.headers },
    body: options.body ?? defaultBody,
  })

export const look = (stack: Stack, id: string): Promise<Answer> => call(`${stack.url}/v1/context/${id}`)

/** @throws Error when the session is not there */
export const view = async (stack: Stack, id: string): Promise<ContextView> => {
  const answer = await look(stack, id)
  if (answer.status !== 200) throw new Error(`GET of the context answered ${answer.status}: ${answer.text}`)
  return contextView.parse(answer.body)
}

export const remove = (stack: Stack, id: string): Promise<Answer> =>
  call(`${stack.url}/v1/context/${id}`, { method: 'DELETE' })

export const cacheLine = (answer: Answer): string | null => answer.headers.get('x-context-cache')

/** The sum of a metric of a gateway over all series whose labels contain these; `name` without its prefix. */
export const metric = async (
  stack: Stack,
  name: string,
  labels: Readonly<Record<string, string>> = {},
  gateway = 0,
): Promise<number> => {
  const page = await call(`${stack.gateway(gateway).adminUrl}/metrics`)
  return page.text
    .split('\n')
    .filter((line) => line.startsWith(`context_cache_${name}{`) || line.startsWith(`context_cache_${name} `))
    .filter((line) => Object.entries(labels).every(([label, value]) => line.includes(`${label}="${value}"`)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** The error that a body carries, as OpenAI has it. */
export const errorOf = (answer: Answer): unknown => z.object({ error: z.unknown() }).parse(answer.body).error

/** How many changes of this kind to a pod the gateways have logged. */
export const podChanges = (stack: Stack, kind: 'ready' | 'failing', address: string): number =>
  stack
    .output()
    .split('\n')
    .filter((line) => line.includes(`"kind":"${kind}","address":"${address}"`)).length

/** Waits until the session's last turn is stored. */
export const untilStored = (stack: Stack, id: string, turn: number): Promise<ContextView> =>
  eventually(async () => {
    const seen = await view(stack, id)
    if (seen.kv.stored?.turn !== turn) throw new Error(`turn ${turn} is not stored: ${JSON.stringify(seen)}`)
    return seen
  })

/**
 * Creates a session until the first turn of one is stored, and returns its id: a slot that is just being emptied, or that somebody uses, takes
 * none. `made` is told of every session.
 */
export const storedSession = (
  stack: Stack,
  { body, made }: { readonly body: Record<string, unknown>; readonly made: (id: string) => void },
): Promise<string> =>
  eventually(async () => {
    const id = await createdId(stack, { body })
    made(id)
    const { kv } = await eventually(async () => {
      const seen = await view(stack, id)
      expect(seen.kv.stored ?? seen.kv.note).not.toBeNull()
      return seen
    })
    expect(kv.stored).toMatchObject({ turn: 1 })
    return id
  })
