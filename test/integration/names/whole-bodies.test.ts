import { expect, test } from '@jest/globals'
import { Document, isSeq, parse } from 'yaml'
import { manager } from '../../../playground/envoy-config.ts'
import { call, type HttpResponse, model } from '../support/client.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const routes = [...manager, 'route_config', 'virtual_hosts', 0, 'routes']

/** As with Envoy Gateway: no Lua filter in front of ext_proc, and the bodies of inference requests go to the gateway. */
const withWholeBodies = (text: string): string => {
  const document = new Document(parse(text), { aliasDuplicateObjects: false })
  const list = document.getIn(routes)
  const creates = document.getIn([...routes, 0, 'typed_per_filter_config'])
  for (let at = 0; isSeq(list) && at < list.items.length; at += 1) {
    const regex = document.getIn([...routes, at, 'match', 'safe_regex', 'regex'])
    if (String(regex).includes('chat/completions')) document.setIn([...routes, at, 'typed_per_filter_config'], creates)
  }
  return JSON.stringify(document)
}

const { stack } = useScriptedStack({
  envoyConfig: withWholeBodies,
  env: { CTX_SESSIONS_IMPLICIT_NAMES: 'session-id,body.prompt_cache_key' },
})

const ask = (sent: Record<string, string>, more: object = {}): Promise<HttpResponse> =>
  call(`${stack.url}/v1/chat/completions`, {
    headers: sent,
    body: { model, ...more, messages: [{ role: 'user', content: 'hello' }] },
  })

test.each([
  { kind: 'session-id', sent: { 'session-id': 'a' }, more: {} },
  { kind: 'body.prompt_cache_key', sent: {}, more: { prompt_cache_key: 'a' } },
])('where Envoy sends whole bodies, $kind names a session', async ({ kind, sent, more }) => {
  const first = await ask(sent, more)
  const next = await ask(sent, more)
  const id = first.headers.get('x-session-id')

  expect(first.headers.get('x-context-cache')).toBe('miss; reason=new_session')
  expect(next.headers.get('x-session-id')).toBe(id)
  expect((await call(`${stack.url}/v1/context/${id}`)).body).toMatchObject({ named_by: kind, model })
})

test('where Envoy sends whole bodies, a request without a name has no session', async () => {
  const answer = await ask({})

  expect([answer.status, answer.headers.get('x-session-id')]).toEqual([200, null])
})
