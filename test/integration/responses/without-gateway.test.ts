import { beforeAll, describe, expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { engineResponse, inferenceBodies, inferencePaths } from '../support/scripted-responses.ts'
import { errorOf } from '../support/sessions.ts'
import { type ScriptedStack, useScriptedStack } from '../support/use-stack.ts'

const body = inferenceBodies['/v1/responses']
const withTool = {
  tools: [{ type: 'function', name: 'f', parameters: { properties: { conversation: { type: 'string' } } } }],
}
const continuing: readonly (readonly [string, object])[] = [
  ['that continues a response', { previous_response_id: 'resp_1' }],
  ['that continues a conversation', { conversation: 'conv_1' }],
  ['that continues a conversation by an object', { conversation: { id: 'conv_1' } }],
  [
    'that continues a response, behind quotes and brackets',
    { metadata: { a: '\\"}]' }, previous_response_id: 'resp_1' },
  ],
  [
    'that may continue one, behind more than is looked at',
    { input: Array.from({ length: 100_001 }, () => []), ...withTool },
  ],
]
const text = '{"previous_response_id":"resp_1"}'
const others: readonly (readonly [string, object])[] = [
  ['that begins', {}],
  ['that is not kept', { store: false }],
  ['that says it continues nothing', { previous_response_id: null, conversation: null }],
  ['whose text speaks of a response', { input: text, instructions: `\\${text}` }],
  ['whose tool takes a conversation', { ...withTool, store: false }],
]

const send = ({ stack }: ScriptedStack, part: object, headers: Record<string, string> = {}) =>
  call(`${stack.url}/v1/responses`, { body: { ...body, ...part }, headers })

/** Forwarded as it is. */
const expectPassed = async (bed: ScriptedStack, part: object): Promise<void> => {
  const answer = await send(bed, part)
  expect([answer.status, answer.headers.get('x-context-cache')]).toEqual([200, null])
  expect(JSON.parse(bed.pod.requests().at(-1)?.body ?? '')).toEqual({ ...body, ...part })
}

describe('a gateway that keeps responses, and no sessions by names', () => {
  const bed = useScriptedStack({
    env: { CTX_RESPONSES_STORE: 'true', CTX_SESSIONS_IMPLICIT_NAMES: 'off' },
    wiring: 'lua',
    envoyWaits: 'as-configured',
  })
  beforeAll(() => bed.pod.otherwise(engineResponse()))

  test.each(others)('answers a turn %s', async (_name, part) => {
    expect((await send(bed, part)).status).toBe(200)
  })

  describe('while it hangs', () => {
    beforeAll(() => bed.stack.gateway().child.pause())

    test.each(continuing)('a turn %s is refused, and reaches no engine', async (_name, part) => {
      const requests = bed.pod.requests().length
      for (const headers of [{}, { 'x-response-cache': 'on' }, { 'x-session-id': 'ctx_1' }]) {
        const answer = await send(bed, part, headers)
        expect(answer.status).toBe(503)
        expect(errorOf(answer)).toMatchObject({ type: 'api_error', code: 'service_unavailable' })
      }
      expect(bed.pod.requests()).toHaveLength(requests)
    })

    test.each(others)('a turn %s passes', (_name, part) => expectPassed(bed, part))

    test.each(inferencePaths)('other requests pass: %s', async (path) => {
      expect((await call(`${bed.stack.url}${path}`, { body: inferenceBodies[path] })).status).toBe(200)
    })
  })
})

describe('while no gateway runs and none kept responses', () => {
  const bed = useScriptedStack({ wiring: 'lua', envoyWaits: 'as-configured' })
  beforeAll(async () => {
    bed.pod.otherwise(engineResponse())
    await bed.stack.gateway().child.kill()
  })

  test.each([...continuing, ...others])('a turn %s passes', (_name, part) => expectPassed(bed, part))
})
