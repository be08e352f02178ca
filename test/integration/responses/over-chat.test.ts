import { describe, expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { openai } from '../support/openai-client.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { ask } from './support.ts'
import { takeTenTurns, waysToContinue } from './ten-turns.ts'

// In both wirings: over-chat-pod.test.ts.
describe('engines without /v1/responses', () => {
  const stack = useStack({
    env: { CTX_RESPONSES_STORE: 'true', CTX_ENGINES_RESPONSES_API: 'chat' },
    pods: embeddedPods({ contextTokensPerSlot: 8192, arguments: ['--no-responses'] }),
  })
  const client = () => openai(stack.url, { headers: { 'routing-strategy': 'round-robin' } })

  test('they have none', async () => {
    const answer = await call(`http://${stack.pods[0]?.address}/v1/responses`, { body: { model: 'm', input: 'a' } })
    expect(answer.status).toBe(404)
  })

  test.each(waysToContinue(client))(
    'ten turns with tools by $by, every other one streamed, start from all KV before',
    (way) =>
      takeTenTurns({
        stack,
        client: client(),
        way,
        expected: () => ({ object: 'response', store: true, status: 'incomplete' }),
      }),
  )

  test.each([true, false])('a turn that is not kept is answered (stream: %s)', async (stream) => {
    const given = { model: 'tiny-random', input: 'a', store: false, max_output_tokens: 4 } as const
    const answer = stream
      ? await client().responses.stream(given).finalResponse()
      : await client().responses.create(given)
    expect(answer).toMatchObject({ store: false, previous_response_id: null, usage: { output_tokens: 4 } })
    expect(answer.output_text).not.toBe('')
    const asked = ask(client(), { input: 'b', continues: { previous_response_id: answer.id }, stream: false })
    await expect(asked).rejects.toMatchObject({ code: 'previous_response_not_found' })
  })

  test('what chat has not is refused by its name, and the conversation stays free', async () => {
    const conversation = (await client().conversations.create()).id
    const asked = { model: 'tiny-random', input: 'a', conversation, max_output_tokens: 2 }
    const refused = client().responses.create({ ...asked, tools: [{ type: 'web_search' }] })
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'unsupported_parameter', param: 'tools[0].type' })
    expect((await client().responses.create(asked)).conversation).toEqual({ id: conversation })
  })
})
