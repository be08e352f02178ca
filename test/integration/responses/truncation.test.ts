import { expect, test } from '@jest/globals'
import { call, type HttpResponse, model } from '../support/client.ts'
import { untilTurns } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const contextTokens = 512
const stack = useStack({
  env: { CTX_RESPONSES_STORE: 'true' },
  pods: embeddedPods({ count: 1, contextTokensPerSlot: contextTokens }),
})

interface Told {
  readonly id: string
  readonly truncated_items?: number
  readonly usage: { readonly input_tokens: number }
}

/** Turns of one chain until one is refused, at most so many. */
const converse = async (body: object, most: number): Promise<readonly HttpResponse[]> => {
  const answers: HttpResponse[] = []
  let previous: string | undefined
  while (answers.length < most) {
    const input = `Question ${answers.length}: ${'and tell me more about all of it '.repeat(4)}`
    const answer = await call(`${stack.url}/v1/responses`, {
      body: {
        model,
        input,
        max_output_tokens: 8,
        ...body,
        ...(previous === undefined ? {} : { previous_response_id: previous }),
      },
    })
    answers.push(answer)
    if (answer.status !== 200) return answers
    previous = (answer.body as Told).id
    await untilTurns(stack, answer.headers.get('x-session-id') ?? '', answers.length)
  }
  return answers
}

test('truncation: auto leaves the oldest turns out before the context would overflow, and says so', async () => {
  const answers = await converse({ truncation: 'auto' }, 12)
  const told = answers.map(({ body }) => body as Told)
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200))
  expect(told.every(({ usage }) => usage.input_tokens <= contextTokens)).toBe(true)
  const leftOut = told.map(({ truncated_items = 0 }) => truncated_items)
  expect(leftOut.at(-1)).toBeGreaterThan(0)
  expect(leftOut).toEqual(leftOut.toSorted((a, b) => a - b))
  expect(answers.map(({ headers }) => Number(headers.get('x-context-truncated-items')))).toEqual(leftOut)
})

test('without it the error of the engine comes back', async () => {
  const answers = await converse({}, 12)
  const last = answers.at(-1)
  expect(last?.status).toBe(400)
  expect(last?.text).toContain('exceeds the context')
})
