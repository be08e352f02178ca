import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { call, type HttpResponse, model } from '../support/client.ts'
import { openRaw, readMessages } from '../support/raw-http.ts'
import { prompt, remove, storedSession, unknownId, untilStored, untilTurns, use } from '../support/sessions.ts'
import type { StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const text = prompt(40)
const conversation = { model, messages: [{ role: 'user', content: text }], max_tokens: 2 }
const asResponse = { model, input: text, max_output_tokens: 2 }
const another = { authorization: 'Bearer another-key' }

const answer = z.object({
  usage: z.union([
    z
      .object({ prompt_tokens_details: z.object({ cached_tokens: z.int() }) })
      .transform((usage) => usage.prompt_tokens_details.cached_tokens),
    z
      .object({ input_tokens_details: z.object({ cached_tokens: z.int() }) })
      .transform((usage) => usage.input_tokens_details.cached_tokens),
  ]),
})

/** How many tokens of the prompt the engine did not compute. @throws ZodError when the response is no answer */
const cachedTokens = (response: HttpResponse): number => answer.parse(response.body).usage

/** A request that is no turn of the session, with the session's whole conversation. */
interface Replay {
  readonly name: string
  readonly path?: string
  readonly headers: Record<string, string>
  readonly body: object
}

const replays: readonly Replay[] = [
  { name: 'another tenant', headers: another, body: conversation },
  { name: 'another tenant, by the other API', path: '/v1/responses', headers: another, body: asResponse },
  { name: 'no credential', headers: { authorization: '' }, body: conversation },
  { name: 'its tenant without the session', headers: {}, body: conversation },
  { name: "another tenant's own name", headers: { ...another, 'x-session-id': 'conversation-1' }, body: conversation },
  { name: 'an id that was never given out', headers: { ...another, 'x-session-id': unknownId }, body: conversation },
  ...[0, 1].map((id_slot) => ({
    name: `slot ${id_slot} and the cache asked for`,
    headers: another,
    body: { ...conversation, id_slot, cache_prompt: true },
  })),
]

/** What no engine with slots may do: start a request that is no turn of the session with the session's KV. */
export const describeReplays = (
  engine: string,
  startPods: (kvDirectory: string) => Promise<readonly StackPod[]>,
): void => {
  describe(`the conversation of a session, replayed on the ${engine}`, () => {
    let id: string
    let turns = 1
    const stack = useStack({ pods: startPods }, async (started) => {
      id = await storedSession(started, { body: conversation })
    })

    /** A turn of the session, after which its KV lies in a slot. */
    const takeTurn = async (): Promise<void> => {
      expect((await use(stack, id, { path: '/v1/chat/completions', body: conversation })).status).toBe(200)
      turns += 1
      await untilStored(stack, id, turns)
    }

    const replay = async ({ path = '/v1/chat/completions', headers, body }: Omit<Replay, 'name'>): Promise<number> =>
      cachedTokens(await call(`${stack.url}${path}`, { headers, body }))

    test('starts from the KV of the session where a client reaches the engine itself', async () => {
      await takeTurn()

      const direct = await call(`http://${stack.pods[0]?.address}/v1/chat/completions`, { body: conversation })

      expect(cachedTokens(direct)).toBeGreaterThan(100)
    })

    test.each(replays)('starts from no KV: $name', async (request) => {
      await takeTurn()

      expect(await replay(request)).toBe(0)
    })

    test('starts from no KV: the id of the session, of another tenant', async () => {
      await takeTurn()

      expect(await replay({ headers: { ...another, 'x-session-id': id }, body: conversation })).toBe(0)
    })

    test("starts from no KV: the name of another tenant's session", async () => {
      const name = { 'thread-id': 'conversation' }
      const named = await call(`${stack.url}/v1/chat/completions`, { headers: name, body: conversation })
      await untilStored(stack, named.headers.get('x-session-id') ?? '', 1)

      expect(await replay({ headers: { ...another, ...name }, body: conversation })).toBe(0)
      expect(await replay({ headers: name, body: conversation })).toBeGreaterThan(100)
    })

    test('starts from no KV: the id of a deleted session', async () => {
      const deleted = await storedSession(stack, { body: conversation })
      expect((await remove(stack, deleted)).status).toBe(200)
      await takeTurn()

      expect(await replay({ headers: { 'x-session-id': deleted }, body: conversation })).toBe(0)
    })

    test('starts from no KV of others: a turn whose body follows when others have used its slot', async () => {
      await takeTurn()
      const secret = { ...conversation, messages: [{ role: 'user', content: `Secret: ${text}` }] }
      const body = JSON.stringify(secret)
      const headers = ['host: gateway', 'connection: close', 'authorization: Bearer test-key', `x-session-id: ${id}`]
      const socket = await openRaw(stack.port, {
        startLine: 'POST /v1/chat/completions HTTP/1.1',
        headers: [...headers, 'content-type: application/json', `content-length: ${body.length}`],
      })
      // As many at once as there are slots: one after the other they would all run in one.
      await Promise.all([1, 2].map(() => replay({ headers: another, body: { ...secret, max_tokens: 200 } })))
      socket.write(body)
      const [answered] = readMessages(await buffer(socket))
      turns += 1
      await untilTurns(stack, id, turns)

      expect(answer.parse(JSON.parse(String(answered?.body))).usage).toBeLessThan(20)
    })

    test('starts from no KV: the id of the session, and no gateway', async () => {
      await takeTurn()
      await stack.gateway().child.kill()

      expect(await replay({ headers: { 'x-session-id': id }, body: conversation })).toBe(0)
    })
  })
}
