import { describe, expect, test } from '@jest/globals'
import { untilStored } from '../lifecycle/session.ts'
import { openai } from '../support/openai-client.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { type Answer, ask } from './support.ts'
import { takeTenTurns, waysToContinue } from './ten-turns.ts'

describe.each(['lua', 'picker'] as const)('in the wiring %s', (wiring) => {
  const stack = useStack({
    wiring,
    env: { CTX_RESPONSES_STORE: 'true' },
    pods: embeddedPods({ contextTokensPerSlot: 8192 }),
  })
  const client = () => openai(stack.url, { headers: { 'routing-strategy': 'round-robin' } })

  test.each(waysToContinue(client))(
    'ten turns with tools by $by, every other one streamed, start from the KV of all that went before, on any pod',
    (way) =>
      takeTenTurns({
        stack,
        client: client(),
        way,
        expected: (continues) => ({
          previous_response_id:
            continues !== undefined && 'previous_response_id' in continues ? continues.previous_response_id : null,
          store: true,
        }),
      }),
  )

  test('two continuations of one response start from its KV, and do not see each other', async () => {
    const root = await ask(client(), { input: 'the trunk', stream: false })
    const continues = { previous_response_id: root.answer.id }
    const left = await ask(client(), { input: 'the left branch', continues, stream: true })
    await untilStored(client(), root.session ?? '', 2)
    const right = await ask(client(), { input: 'the right branch', continues, stream: true })
    const grown = await ask(client(), {
      input: 'more',
      continues: { previous_response_id: left.answer.id },
      stream: false,
    })
    const alone = await ask(client(), {
      input: 'more',
      continues: { previous_response_id: right.answer.id },
      stream: false,
    })
    expect(right).toMatchObject({ session: root.session, cache: expect.stringMatching(/^hit; tier=store/) })
    expect(right.answer.usage?.input_tokens_details.cached_tokens).toBeGreaterThan(
      0.9 * (root.answer.usage?.total_tokens ?? Number.NaN),
    )
    const tokens = ({ answer }: { readonly answer: Answer }) => answer.usage?.input_tokens ?? 0
    expect(tokens(left)).toBeLessThan(tokens(grown))
    expect(tokens(right)).toBeLessThan(tokens(alone))
    // Neither has the other's question and answer in it.
    expect(tokens(alone) - tokens(right)).toBeLessThan(tokens(left))
  })

  test('the history of another caller is unknown', async () => {
    const { answer } = await ask(client(), { input: 'mine', stream: false })
    const other = openai(stack.url, { apiKey: 'another' })
    const asked = ask(other, { input: 'yours?', continues: { previous_response_id: answer.id }, stream: false })
    await expect(asked).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('store: false is honoured', async () => {
    const answer = await client().responses.create({
      model: 'tiny-random',
      input: 'a',
      store: false,
      max_output_tokens: 2,
    })
    const asked = ask(client(), { input: 'b', continues: { previous_response_id: answer.id }, stream: false })
    await expect(asked).rejects.toMatchObject({ code: 'previous_response_not_found' })
  })
})
