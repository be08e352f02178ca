import { expect } from '@jest/globals'
import { z } from 'zod'
import { call, model } from '../support/client.ts'
import { exchangeRaw, headerOf, type RawMessage, rawRequest, readMessages } from '../support/raw-http.ts'
import { engineAnswer, inferencePaths } from '../support/scripted-answers.ts'
import { type PodScript, type RecordedRequest, type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { type Stack, startStack } from '../support/stack.ts'

/** An engine's answer on the inference paths, and something on all others. */
export const anyAnswer: PodScript = (request, reply) =>
  inferencePaths.some((path) => path === request.path) ? engineAnswer()(request, reply) : reply.json(200, { any: true })

/** A stack in front of two scripted pods. */
export interface Bench {
  readonly stack: Stack
  readonly pods: readonly [ScriptedPod, ScriptedPod]
  stop(): Promise<void>
}

export const startBench = async (env: Readonly<Record<string, string>> = {}): Promise<Bench> => {
  const pods = [await startScriptedPod(), await startScriptedPod()] as const
  for (const pod of pods) pod.otherwise(anyAnswer)
  const stopPods = async (): Promise<void> => {
    await Promise.all(pods.map((pod) => pod.stop()))
  }
  try {
    const stack = await startStack({ pods: async () => pods, env: { CONNECTOR: 'none', ...env } })
    return {
      stack,
      pods,
      stop: async () => {
        await stack.stop()
        await stopPods()
      },
    }
  } catch (error) {
    await stopPods()
    throw error
  }
}

/** A request as a pod saw it. */
export interface Arrival {
  readonly pod: string
  readonly request: RecordedRequest
}

/** Does something, and tells what reached the pods meanwhile. */
export const watching = async <T>(
  bench: Bench,
  act: () => Promise<T>,
): Promise<{ readonly result: T; readonly arrivals: readonly Arrival[] }> => {
  const before = bench.pods.map((pod) => pod.requests().length)
  const result = await act()
  const arrivals = bench.pods.flatMap((pod, index) =>
    pod
      .requests()
      .slice(before[index])
      .map((request) => ({ pod: pod.address, request })),
  )
  return { result, arrivals }
}

/** What a client gets to read, however it asked. */
export interface Reading {
  readonly status: number
  /** All values, joined with commas; null: there is none. */
  header(name: string): string | null
  readonly text: string
}

export type Answer = Awaited<ReturnType<typeof call>>

export const reading = (answer: Answer): Reading => ({
  status: answer.status,
  header: (name) => answer.headers.get(name),
  text: answer.text,
})

const statusLine = /^HTTP\/1\.1 (\d{3})/

export const rawReading = (message: RawMessage): Reading => ({
  status: Number(statusLine.exec(message.startLine)?.[1]),
  header: (name) => {
    const values = headerOf(message, name)
    return values.length === 0 ? null : values.join(',')
  },
  text: message.body.toString(),
})

/** Sends one request byte for byte and reads the only answer. */
export const askRaw = async (stack: Stack, bytes: Buffer): Promise<Reading> => {
  const messages = readMessages(await exchangeRaw(stack.port, bytes))
  const [message] = messages
  if (message === undefined || messages.length > 1) throw new Error(`there are ${messages.length} answers`)
  return rawReading(message)
}

const standing = ['host: gateway', 'connection: close'] as const
export const credential = 'authorization: Bearer test-key'
export const asJson = 'content-type: application/json'

/** A well-formed request but for what the test puts into it. Latin-1. */
export const wellFramed = (
  startLine: string,
  options: { readonly headers?: readonly string[]; readonly body?: string } = {},
): Buffer =>
  rawRequest({
    startLine: `${startLine} HTTP/1.1`,
    headers: [
      ...standing,
      ...(options.headers ?? []),
      ...(options.body === undefined ? [] : [`content-length: ${options.body.length}`]),
    ],
    body: options.body ?? '',
  })

export const someBody = { model, prompt: 'a prompt', max_tokens: 2 } as const
export const someJson = JSON.stringify(someBody)

/** An id of the gateway's form that it never gave out. */
export const unknownId = `ctx_${'u'.repeat(32)}`

export const createSession = async (
  stack: Stack,
  options: { readonly headers?: Record<string, string>; readonly body?: unknown } = {},
): Promise<string> => {
  const answer = await call(`${stack.url}/v1/context`, { body: someBody, ...options })
  const id = answer.headers.get('x-session-id')
  if (id === null) throw new Error(`no session was created: ${answer.status} ${answer.text}`)
  return id
}

const turnsForm = z.object({ turns: z.number(), ttl: z.number(), expires_at: z.number() })

/** @throws Error when the session is not there */
export const look = async (
  stack: Stack,
  id: string,
): Promise<{ readonly turns: number; readonly ttl: number; readonly expires_at: number }> => {
  const answer = await call(`${stack.url}/v1/context/${id}`)
  if (answer.status !== 200) throw new Error(`there is no session: ${answer.status} ${answer.text}`)
  return turnsForm.parse(answer.body)
}

const listForm = z.object({ data: z.array(z.object({ id: z.string() })) })

/** The ids of a credential's newest sessions. */
export const listed = async (stack: Stack, headers: Record<string, string> = {}): Promise<readonly string[]> =>
  listForm.parse((await call(`${stack.url}/v1/context?limit=100`, { headers })).body).data.map(({ id }) => id)

export interface Refusal {
  readonly status: number
  readonly code: string
  /** Default: null. */
  readonly param?: string | null
  /** Default: `invalid_request_error`. */
  readonly type?: string
}

/** Addresses, files, stack traces, system errors and the names of parts: what no client has to know. */
const internals =
  /127\.0\.0\.1|localhost|node_modules|\.[jt]s:\d|\bat \S+ \(|\bE[A-Z]{5,}\b|ext_proc|[Uu]pstream|[Ee]nvoy|\blua|[Rr]edis/

/** An error as OpenAI's SDKs read it, which they do not try again. */
export const expectRefusal = (answer: Reading, refusal: Refusal): void => {
  const { status, code, param = null, type = 'invalid_request_error' } = refusal
  expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
    status,
    body: { error: { message: expect.stringMatching(/\w.*\.$/), type, param, code } },
  })
  expect(answer.header('content-type')).toBe('application/json')
  expect(answer.header('x-should-retry')).toBe('false')
  expect(answer.header('x-session-id')).toBeNull()
  expect(answer.header('x-context-cache')).toBeNull()
  expect(answer.text).not.toMatch(internals)
}

/** An answer of a pod, with nothing of the gateway's. */
export const expectPassedOn = (answer: Reading): void => {
  expect(answer.status).toBe(200)
  for (const name of ['x-session-id', 'x-session-ttl', 'x-session-expires-at', 'x-context-cache']) {
    expect(answer.header(name)).toBeNull()
  }
}
