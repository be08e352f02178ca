import { describe, expect, test } from '@jest/globals'
import type OpenAI from 'openai'
import { openai } from '../support/openai-client.ts'
import type { ContextView } from '../support/sessions.ts'
import type { StackOptions } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { type Api, apis, type Conversation, continued, opening, type Turn } from './conversation.ts'
import { sessionIdOf, untilStored, view } from './session.ts'

/** An API of OpenAI, and whether its answers are streamed. */
export interface Flow {
  readonly name: string
  readonly api: Api
  readonly streamed: boolean
}

export const allFlows: readonly Flow[] = apis.flatMap((api) =>
  [false, true].map((streamed) => ({ name: `${api.name}, ${streamed ? 'streamed' : 'not streamed'}`, api, streamed })),
)

/** A session in the middle of its conversation. */
interface Talk extends Flow {
  readonly id: string
  readonly turns: number
  readonly conversation: Conversation
  readonly response: Turn
  readonly view: ContextView
}

const usageOf = (turn: Turn): NonNullable<Turn['usage']> => {
  if (turn.usage === undefined) throw new Error('the answer carries no usage')
  return turn.usage
}

/** A session's conversation on an engine: created, continued on the same pod, continued on the other pod. */
export const describeConversations = (
  engine: {
    readonly name: string
    /** The engine reports token counts at the end of every stream, also without `include_usage`. */
    readonly countsEveryStream: boolean
    readonly flows: readonly Flow[]
  },
  options: StackOptions,
): void => {
  describe(engine.name, () => {
    let client: OpenAI
    const stack = useStack(options, ({ url }) => {
      client = openai(url)
    })

    const begin = async (flow: Flow, conversation: Conversation): Promise<Talk> => {
      const response = await flow.api.create(client, { conversation, streamed: flow.streamed })
      const id = sessionIdOf(response)
      return { ...flow, id, turns: 1, conversation, response, view: await untilStored(client, id, 1) }
    }

    const goOn = async (talk: Talk, text: string, headers: Record<string, string> = {}): Promise<Talk> => {
      const conversation = continued(talk.conversation, talk.response, text)
      const response = await talk.api.send(client, {
        conversation,
        streamed: talk.streamed,
        headers: { 'x-session-id': talk.id, ...headers },
      })
      const turns = talk.turns + 1
      return { ...talk, turns, conversation, response, view: await untilStored(client, talk.id, turns) }
    }

    /** Takes turns until another pod serves one, which round-robin does within two. */
    const goElsewhere = async (talk: Talk): Promise<Talk> => {
      const next = await goOn(talk, `turn ${talk.turns + 1}, anywhere`, { 'routing-strategy': 'round-robin' })
      return next.view.kv.pod === talk.view.kv.pod ? goElsewhere(next) : next
    }

    /** Tokens that the session's KV has before the turn. */
    const storedTokens = (talk: Talk): number => talk.view.kv.stored?.tokens ?? 0

    describe.each(engine.flows)('session by $name', (flow) => {
      test('is created, goes on in its pod, is loaded in the other one, and extended there', async () => {
        const created = await begin(flow, opening(flow.name))
        const { headers } = created.response
        const { prompt, output, cached } = usageOf(created.response)
        expect(created.response.text).not.toBe('')
        expect(headers.get('x-context-cache')).toBe('miss; reason=new_session')
        expect(headers.get('x-session-ttl')).toBe('3600')
        expect(created.view).toMatchObject({
          id: created.id,
          model: 'tiny-random',
          ttl: 3600,
          turns: 1,
          tokens: { prompt, output, cached },
        })
        expect(storedTokens(created)).toBeGreaterThanOrEqual(prompt)
        expect(storedTokens(created)).toBeLessThanOrEqual(prompt + output)
        const announced = Date.parse(headers.get('x-session-expires-at') ?? '') / 1000
        expect(Math.floor(announced)).toBe(created.view.expires_at)

        const stayed = await goOn(created, 'and then?')
        expect(stayed.view.kv.pod).toBe(created.view.kv.pod)
        expect(stayed.response.headers.get('x-session-id')).toBe(created.id)
        expect(stayed.response.headers.get('x-context-cache')).toBe(`hit; tier=gpu; tokens=${storedTokens(created)}`)
        expect(usageOf(stayed.response).cached).toBeGreaterThanOrEqual(prompt)

        const moved = await goElsewhere(stayed)
        expect(moved.response.headers.get('x-context-cache')).toMatch(/^hit; tier=store; tokens=\d+; load=\d+ms$/)
        expect(usageOf(moved.response).cached).toBeGreaterThan(prompt)

        const grown = await goOn(moved, 'and in the end?')
        expect(grown.view.kv.pod).toBe(moved.view.kv.pod)
        expect(grown.response.headers.get('x-context-cache')).toBe(`hit; tier=gpu; tokens=${storedTokens(moved)}`)
        expect(usageOf(grown.response).cached).toBeGreaterThanOrEqual(usageOf(moved.response).prompt)
        expect(storedTokens(grown)).toBeGreaterThan(storedTokens(moved))
      })

      test('inference request with x-session-ttl creates the session, and one with its id uses it', async () => {
        const ttlClient = openai(stack.url, { headers: { 'x-session-ttl': '600' } })
        const conversation = opening(`by default header ${flow.name}`)

        const first = await flow.api.send(ttlClient, { conversation, streamed: flow.streamed })
        const id = sessionIdOf(first)
        await untilStored(client, id, 1)
        const second = await flow.api.send(ttlClient, {
          conversation: continued(conversation, first, 'and then?'),
          streamed: flow.streamed,
          headers: { 'x-session-id': id },
        })

        expect(first.headers.get('x-context-cache')).toBe('miss; reason=new_session')
        expect(second.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu; /)
        expect(usageOf(second).cached).toBeGreaterThanOrEqual(usageOf(first).prompt)
        expect(await untilStored(client, id, 2)).toMatchObject({ ttl: 600, turns: 2 })
      })
    })

    describe.each(apis)('stream of $name without include_usage', (api) => {
      test('counts as a turn and stores its KV', async () => {
        const created = await api.create(client, { conversation: opening(`counting ${api.name}`), streamed: false })
        const id = sessionIdOf(created)
        const before = await untilStored(client, id, 1)

        const streamed = await api.send(client, {
          conversation: continued(opening(`counting ${api.name}`), created, 'and then?'),
          streamed: true,
          includeUsage: false,
          headers: { 'x-session-id': id },
        })

        expect(streamed.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu; /)
        const after = await untilStored(client, id, 2)
        const isCounted = streamed.usage !== undefined || engine.countsEveryStream
        expect(after.tokens.prompt > before.tokens.prompt).toBe(isCounted)
        expect(after.kv.stored?.tokens).toBeGreaterThan(before.kv.stored?.tokens ?? 0)
        await expect(view(client, id)).resolves.toEqual(after)
      })
    })
  })
}
