import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { packageRoot } from '../../../playground/paths.ts'
import { call } from '../support/client.ts'
import { cacheLine, create, createdId, look, remove, untilGone, untilTurns, use } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

/** The headers that docs/envoy.md tells operators to list. */
const documented = async (): Promise<readonly string[]> => {
  const text = await readFile(join(packageRoot(), 'docs/envoy.md'), 'utf8')
  const sentence = /`forward_rules\.allowed_headers` of `ext_proc`: (.*), and/.exec(text)?.[1] ?? ''
  return [...sentence.matchAll(/`([^`]+)`/g)].flatMap(([, name = '']) => name)
}
const patterns = (await documented()).map((exact) => ({ exact }))

const { stack, pod } = useScriptedStack({
  envoyConfig: (text) =>
    text.replace(
      /^( *)message_timeout: 2s$/m,
      `$&\n$1forward_rules: ${JSON.stringify({ allowed_headers: { patterns } })}`,
    ),
})

test('the documented headers are all that the gateway needs', async () => {
  const { text } = await call(`http://${stack.envoy.adminAddress}/config_dump`)
  expect(text).toContain('"allowed_headers"')
  expect(patterns).toContainEqual({ exact: 'x-session-id' })
  const retried = { headers: { 'idempotency-key': 'one', cookie: 'a=b' } }
  const id = await createdId(stack, retried)
  expect(await createdId(stack, retried)).toBe(id)
  await untilTurns(stack, id, 2)

  const turn = await use(stack, id, { headers: { 'x-session-ttl': '600', 'x-other': 'kept' } })
  expect([turn.status, turn.headers.get('x-session-id'), turn.headers.get('x-session-ttl')]).toEqual([200, id, '600'])
  expect(cacheLine(turn)).not.toBeNull()
  expect(pod.requests().at(-1)?.headers).toMatchObject({ 'x-other': 'kept' })
  await untilTurns(stack, id, 3)

  const unknownPolicy = await use(stack, id, { headers: { 'routing-strategy': 'no-such-policy' } })
  expect(unknownPolicy.status).toBe(400)
  const compressed = await create(stack, { headers: { 'content-encoding': 'gzip' } })
  expect(compressed.status).toBe(415)
  expect((await look(stack, id)).status).toBe(200)
  expect((await remove(stack, id)).status).toBe(200)
  await untilGone(stack, id)
})
