import { expect } from '@jest/globals'
import { z } from 'zod'
import { call, type HttpResponse, model } from '../support/client.ts'
import type { PodScript, RecordedRequest } from '../support/pod-script.ts'
import { exchangeRaw, headerOf, type RawMessage, rawRequest, readMessages } from '../support/raw-http.ts'
import { engineResponse, inferencePaths } from '../support/scripted-responses.ts'
import type { Stack } from '../support/stack.ts'
import type { ScriptedStack } from '../support/use-stack.ts'

/** An engine's response on the inference paths, and something on all others. */
export const anyResponse: PodScript = (request, reply) =>
  inferencePaths.some((path) => path === request.path)
    ? engineResponse()(request, reply)
    : reply.json(200, { any: true })

/** A request as a pod saw it. */
export interface Arrival {
  readonly pod: string
  readonly request: RecordedRequest
}

/** Runs `act`, and returns the requests that reached the pods meanwhile. */
export const watching = async <T>(
  fixture: Pick<ScriptedStack, 'pods'>,
  act: () => Promise<T>,
): Promise<{ readonly result: T; readonly arrivals: readonly Arrival[] }> => {
  const before = fixture.pods.map((pod) => pod.requests().length)
  const result = await act()
  const arrivals = fixture.pods.flatMap((pod, index) =>
    pod
      .requests()
      .slice(before[index])
      .map((request) => ({ pod: pod.address, request })),
  )
  return { result, arrivals }
}

/** The parts of a response that tests look at, by whatever client it was read. */
export interface Reading {
  readonly status: number
  /** All values, joined with commas; null: there is none. */
  header(name: string): string | null
  readonly text: string
}

export const reading = (response: HttpResponse): Reading => ({
  status: response.status,
  header: (name) => response.headers.get(name),
  text: response.text,
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

/** Sends one request byte for byte and reads the only response. */
export const askRaw = async (stack: Stack, bytes: Buffer): Promise<Reading> => {
  const messages = readMessages(await exchangeRaw(stack.port, bytes))
  const [message] = messages
  if (message === undefined || messages.length > 1) throw new Error(`there are ${messages.length} responses`)
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

const listForm = z.object({ data: z.array(z.object({ id: z.string() })) })

/** The ids of a credential's five newest sessions, the newest first. */
export const listed = async (stack: Stack, headers: Record<string, string> = {}): Promise<readonly string[]> =>
  listForm.parse((await call(`${stack.url}/v1/context?limit=5`, { headers })).body).data.map(({ id }) => id)

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
export const expectRefusal = (response: Reading, refusal: Refusal): void => {
  const { status, code, param = null, type = 'invalid_request_error' } = refusal
  expect({ status: response.status, body: JSON.parse(response.text) }).toEqual({
    status,
    body: { error: { message: expect.stringMatching(/\w.*\.$/), type, param, code } },
  })
  expect(response.header('content-type')).toBe('application/json')
  expect(response.header('x-should-retry')).toBe('false')
  expect(response.header('x-session-id')).toBeNull()
  expect(response.header('x-context-cache')).toBeNull()
  expect(response.text).not.toMatch(internals)
}

/** A response of a pod, with no header of the gateway. */
export const expectPassedOn = (response: Reading): void => {
  expect(response.status).toBe(200)
  for (const name of ['x-session-id', 'x-session-ttl', 'x-session-expires-at', 'x-context-cache']) {
    expect(response.header(name)).toBeNull()
  }
}
