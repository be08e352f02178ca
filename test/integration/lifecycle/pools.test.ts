import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { cacheLine, create, createdId, errorOf, prompt, remove, untilStored, use } from '../support/sessions.ts'
import { embeddedPods, type StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const root = mkdtempSync(join(tmpdir(), 'pools-'))
afterAll(() => rm(root, { recursive: true, force: true }))

/** Two pools with a folder, a model and a key of their own; the client's key is that of the pool `chat`. */
describe.each(['memory', 'redis'] as const)('with the %s store', (store) => {
  const folderOf = (name: string) => join(root, store, name)
  const env: Record<string, string> = {}
  const stack = useStack({
    store,
    env,
    pods: async () => {
      const start = (name: string, model: string, key: readonly string[]): Promise<readonly StackPod[]> =>
        embeddedPods({ count: 2, arguments: ['--model-name', model, ...key] })(folderOf(name))
      const [chat, code] = await Promise.all([
        start('chat', 'chat-model', ['--api-key', 'test-key']),
        start('code', 'code-model', []),
      ])
      const pool = (name: string, pods: readonly StackPod[], more: object = {}) => ({
        name,
        pods: pods.map(({ address }) => address),
        kv: { directory: folderOf(name), prefillMsPerToken: 1000 },
        ...more,
      })
      env['PODS'] = ''
      env['KV_DIR'] = ''
      env['CTX_POOLS'] = JSON.stringify([pool('chat', chat, { apiKey: 'test-key' }), pool('code', code)])
      return [...chat, ...code]
    },
  })

  const bodyOf = (model: string, words = 20) => ({ model, prompt: prompt(words), max_tokens: 2 })

  test.each([
    { model: 'chat-model', pods: [0, 1] },
    { model: 'code-model', pods: [2, 3] },
  ])('a session of $model lives on the pods of its pool, and its KV moves between them', async ({ model, pods }) => {
    const body = bodyOf(model)
    const id = await createdId(stack, { body })
    const first = await untilStored(stack, id, 1)
    const addresses = pods.map((index) => stack.pods[index]?.address)
    expect(addresses).toContain(first.kv.pod)
    const lines: (string | null)[] = []
    for (const turn of [2, 3, 4]) {
      const response = await use(stack, id, { body, headers: { 'routing-strategy': 'round-robin' } })
      lines.push(cacheLine(response))
      expect(addresses).toContain((await untilStored(stack, id, turn)).kv.pod)
    }
    expect(lines).toEqual(lines.map(() => expect.stringMatching(/^hit;/)))
    expect(lines).toContainEqual(expect.stringMatching(/tier=store/))
    expect((await remove(stack, id)).status).toBe(200)
  })

  test('a model of no pool gets 404', async () => {
    const response = await create(stack, { body: bodyOf('another-model') })
    expect([response.status, errorOf(response)]).toEqual([404, expect.objectContaining({ code: 'model_not_found' })])
  })

  test('a turn without a session goes to the pool of the model that a header names', async () => {
    const headers = { 'x-session-id': 'an-id-of-another-system', 'x-gateway-model-name': 'code-model' }
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => use(stack, 'an-id-of-another-system', { body: bodyOf('code-model'), headers })),
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })
})
