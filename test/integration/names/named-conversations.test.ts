import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, type HttpResponse, model } from '../support/client.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const headers = [
  'x-claude-code-session-id',
  'thread-id',
  'session-id',
  'x-session-affinity',
  'agent-session-id',
  'x-opencode-session',
  'x-affinity',
  'x-openwebui-chat-id',
  'x-session-id',
]
const members = ['prompt_cache_key', 'session_id']
const { stack, pod } = useScriptedStack({
  bodyNames: members,
  // As endpoint picker the gateway looks for members itself.
  env: { CTX_SESSIONS_IMPLICIT_NAMES: [...headers, ...members.map((member) => `body.${member}`)].join() },
})

interface Message {
  readonly role: string
  readonly content: unknown
}

const ask = (
  sent: Record<string, string>,
  more: Readonly<Record<string, unknown>> = {},
  messages: readonly Message[] = [{ role: 'user', content: 'hello' }],
): Promise<HttpResponse> =>
  call(`${stack.url}/v1/chat/completions`, { headers: sent, body: { model, ...more, messages } })

const idOf = ({ headers }: Pick<HttpResponse, 'headers'>): string | null => headers.get('x-session-id')
const statusOf = ({ headers }: Pick<HttpResponse, 'headers'>): string | null => headers.get('x-context-cache')

test.each(headers.map((name) => ({ name })))('the header $name names a session', async ({ name }) => {
  const first = await ask({ [name]: 'conversation' })
  const next = await ask({ [name]: 'conversation' })
  const other = await ask({ [name]: 'another' })
  const view = await call(`${stack.url}/v1/context/${idOf(first)}`)

  expect([first, next, other].map(({ status }) => status)).toEqual([200, 200, 200])
  expect(statusOf(first)).toBe('miss; reason=new_session')
  expect(idOf(next)).toBe(idOf(first))
  expect(idOf(other)).not.toBe(idOf(first))
  expect(view.body).toMatchObject({ named_by: name, model })
})

test.each(members.map((member) => ({ member })))(
  'the member $member of the body names a session',
  async ({ member }) => {
    const first = await ask({}, { [member]: 'cafe-"é' })
    const next = await ask({}, { [member]: 'cafe-"é' })

    expect(statusOf(first)).toBe('miss; reason=new_session')
    expect(idOf(next)).toBe(idOf(first))
    const view = await call(`${stack.url}/v1/context/${idOf(first)}`)
    expect(view.body).toMatchObject({ named_by: `body.${member}` })
  },
)

test('where the text names several models, the outermost one counts', async () => {
  const messages = [{ role: 'assistant', content: [{ type: 'tool_use', input: { model: 'haiku' } }] }]
  const plain = await ask({ 'session-id': 'models' })
  const nested = await ask({ 'session-id': 'models' }, {}, [{ role: 'user', content: 'hello' }, ...messages])

  expect(nested.status).toBe(200)
  expect(idOf(nested)).toBe(idOf(plain))
})

test.each([
  { name: 'a key that is written with escapes after another model', text: `{"model":"other","mod\\u0065l":"${model}"` },
  { name: 'a text with such an escape', text: `{"model":"${model}","user":"\\u0065"` },
])('$name: the model that the engine reads counts', async ({ text }) => {
  const plain = await ask({ 'session-id': 'spelled' })
  const rawBody = `${text},"messages":[{"role":"user","content":"hello"}]}`
  const spelled = await call(`${stack.url}/v1/chat/completions`, {
    rawBody,
    headers: { 'content-type': 'application/json', 'session-id': 'spelled' },
  })
  expect(idOf(spelled)).toBe(idOf(plain))
})

test("the changing line of Claude Code's system prompt is the same for every engine", async () => {
  const turn = (hash: string) =>
    call(`${stack.url}/v1/messages?beta=true`, {
      headers: { 'x-claude-code-session-id': 'billed' },
      body: {
        model,
        max_tokens: 1,
        messages: [{ role: 'user', content: 'x-anthropic-billing-header: mine' }],
        system: [
          { type: 'text', text: `x-anthropic-billing-header: cc_version=2; cch=${hash};` },
          { type: 'text', text: 'You help.' },
        ],
      },
    })
  await turn('12345')
  await turn('abcde')
  const [first, next] = pod.requests().slice(-2)

  expect(next?.body).toBe(first?.body)
  expect(first?.body).toContain('"content":"x-anthropic-billing-header: mine"')
  expect(first?.body).toContain('"text":"You help."')
})

test('six first turns at the same time are one session', async () => {
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask({ 'thread-id': 'at-once' })))

  expect(new Set(answers.map(idOf)).size).toBe(1)
  await eventually(async () => {
    const view = await call(`${stack.url}/v1/context/${idOf(answers[0] ?? { headers: new Headers() })}`)
    expect(view.body).toMatchObject({ turns: 6 })
  })
})

test.each<{ readonly odd: string; readonly sent: Record<string, string>; readonly rawBody?: string }>([
  { odd: 'an empty name', sent: { 'session-id': '' } },
  { odd: 'a long name', sent: { 'session-id': 'x'.repeat(257) } },
  { odd: 'no credential', sent: { 'session-id': 'a', authorization: '' } },
  { odd: 'a body without a model', sent: { 'session-id': 'a' }, rawBody: '{"messages":[]}' },
  // Envoy would look for its end for minutes, were it looked for more than once from the beginning.
  { odd: 'a model of escapes', sent: { 'session-id': 'a' }, rawBody: `{"model":"${'\\\\'.repeat(200_000)}"}` },
  { odd: 'a model of quotes', sent: { 'session-id': 'a' }, rawBody: `{"model":"${'\\"'.repeat(200_000)}"}` },
  { odd: 'an empty body name', sent: {}, rawBody: `{"model":"${model}","prompt_cache_key":""}` },
  { odd: 'a body name that is no text', sent: {}, rawBody: `{"model":"${model}","prompt_cache_key":7}` },
])('$odd leaves the request as if it had no name', async ({ sent, rawBody = `{"model":"${model}"}` }) => {
  const { length } = pod.requests()
  const answer = await call(`${stack.url}/v1/chat/completions`, {
    rawBody,
    headers: { 'content-type': 'application/json', ...sent },
  })

  expect(answer.status).toBe(200)
  expect(idOf(answer)).toBeNull()
  expect(pod.requests()).toHaveLength(length + 1)
})

test('what clients send in the headers of the Lua filter counts for nothing and reaches no pod', async () => {
  const internal = { 'x-context-model': 'm', 'x-context-name': 'prompt_cache_key:k', 'x-context-marks': 'aaaaaaaa' }
  const answer = await ask({ ...internal, 'x-context-ttl': '24h', 'x-context-body': '1' })
  const named = await ask({ ...internal, 'x-context-ttl': '24h', 'session-id': 'honest' })

  expect(idOf(answer)).toBeNull()
  expect((await call(`${stack.url}/v1/context/${idOf(named)}`)).body).toMatchObject({ model, ttl: 3600 })
  const sent = pod.requests().slice(-2)
  expect(sent.flatMap(({ headers }) => Object.keys(headers)).filter((name) => name.startsWith('x-context'))).toEqual([])
})
