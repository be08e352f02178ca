import { afterEach, expect } from '@jest/globals'
import OpenAI, { type ClientOptions } from 'openai'
import { CursorPage } from 'openai/pagination'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import type { ContextView } from '../support/sessions.ts'
import type { Stack } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { anyApi, type Conversation, continued, opening, type Turn } from './conversation.ts'
import { sessionIdOf, tokensInPods, untilStored } from './session.ts'

/** A session in the middle of its conversation. */
export interface Session {
  readonly id: string
  readonly conversation: Conversation
  readonly response: Turn
}

/** A stack for tests that each have tenants of their own. After each test all sessions of its tenants are deleted. */
export interface TenantFixture {
  readonly stack: Stack
  /** The SDK with a credential that no other test has, so that its lists hold its own sessions alone. */
  newTenant(options?: Partial<ClientOptions>): OpenAI
}

export const useTenantFixture = (): TenantFixture => {
  const stack = useStack()
  let count = 0
  let tenants: OpenAI[] = []
  // Some of the sessions have a turn that is just being stored.
  afterEach(async () => {
    for (const client of tenants) {
      const sessions = client.getAPIList<ContextView, CursorPage<ContextView>>('/context', CursorPage)
      for await (const { id } of sessions) await client.delete(`/context/${id}`)
    }
    tenants = []
    await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
  })
  return {
    stack,
    newTenant: (options = {}) => {
      count += 1
      const client = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: `key-${count}`, maxRetries: 0, ...options })
      tenants.push(client)
      return client
    },
  }
}

export const create = async (client: OpenAI, topic: string, headers: Record<string, string> = {}): Promise<Session> => {
  const conversation = opening(topic)
  const response = await anyApi.create(client, { conversation, streamed: false, headers })
  return { id: sessionIdOf(response), conversation, response }
}

export const use = async (client: OpenAI, session: Session, headers: Record<string, string> = {}): Promise<Session> => {
  const conversation = continued(session.conversation, session.response, 'and then?')
  const response = await anyApi.send(client, {
    conversation,
    streamed: false,
    headers: { 'x-session-id': session.id, ...headers },
  })
  return { ...session, conversation, response }
}

/** A session of two turns or more whose KV lies in the store and in both pods. */
export const spread = async (stack: Stack, client: OpenAI, topic: string): Promise<Session> => {
  let session = await create(client, topic)
  let turns = 1
  const pods = new Set([(await untilStored(client, session.id, turns)).kv.pod])
  while (pods.size < stack.pods.length) {
    session = await use(client, session, { 'routing-strategy': 'round-robin' })
    turns += 1
    pods.add((await untilStored(client, session.id, turns)).kv.pod)
  }
  return session
}

/** Waits until neither a pod nor the store, in which nothing else lies, holds anything of the session. */
export const expectGoneEverywhere = (stack: Stack): Promise<void> =>
  eventually(async () => {
    expect(await tokensInPods(stack)).toEqual([0, 0])
    expect(await stack.kvFiles()).toEqual([])
  })

/** How much of a prompt each pod still knows, asked without session and past the gateway. */
export const cachedInPods = (stack: Stack, session: Session): Promise<readonly unknown[]> =>
  Promise.all(
    stack.pods.map(async ({ address }) => {
      const prompt = session.conversation.map(({ text }) => text).join('\n')
      const response = await call(`http://${address}/v1/completions`, { body: { model, prompt, max_tokens: 1 } })
      return (response.body as OpenAI.Completion).usage?.prompt_tokens_details?.cached_tokens
    }),
  )

/** The SDK throws what it makes of a 404. */
export const expectNotFound = async (request: Promise<unknown>): Promise<void> => {
  const error = await request.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(OpenAI.NotFoundError)
  expect(error).toMatchObject({ status: 404, code: 'session_not_found', type: 'invalid_request_error' })
}
