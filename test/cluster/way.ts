import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { call, model } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { pageBlock, shell } from './rig/follow-page.ts'
import type { Rig } from './rig/rig.ts'

const prompt = 'What the pods of a cluster have in common is a network. '.repeat(12)
export const body = { model, prompt, max_tokens: 4, temperature: 0 }
const contextOf = (url: string, id: string, init: Parameters<typeof call>[1] = {}) =>
  call(`${url}/v1/context/${id}`, init)

/** Creates a context, and waits until its KV is stored. */
export const create = (url: string): Promise<string> => eventually(() => createOnce(url))

/** A create that Envoy had to send to another pod is not stored. */
const createOnce = async (url: string): Promise<string> => {
  const created = await call(`${url}/v1/context`, { body })
  expect([created.status, created.text]).toEqual([200, expect.anything()])
  const id = created.headers.get('x-session-id') ?? ''
  // Envoy Gateway's access log reports the end of a turn up to a second later; then its KV is stored.
  const isStored = async () => expect((await contextOf(url, id)).body).toMatchObject({ kv: { stored: { turn: 1 } } })
  await eventually(isStored, { timeoutMs: 10_000 })
  return id
}
/** A turn of a session. */
export const use = (url: string, id: string, headers: Record<string, string> = {}) =>
  call(`${url}/v1/completions`, {
    body: { ...body, prompt: `${prompt} It is` },
    headers: { 'x-session-id': id, ...headers },
  })
const podOf = async (url: string, id: string): Promise<string> => {
  const { kv } = z.object({ kv: z.object({ pod: z.string() }) }).parse((await contextOf(url, id)).body)
  return kv.pod
}
/** Tokens of the prompt that the engine did not compute. */
const cachedTokens = (answer: unknown): number =>
  z.object({ usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.int() }) }) }).parse(answer).usage
    .prompt_tokens_details.cached_tokens

/** What holds of each way into a cluster. */
export const describeWay = (bed: () => { readonly rig: Rig; readonly url: string }): void => {
  test('the commands of docs/kubernetes.md lead to a hit', async () => {
    const { rig, url } = bed()
    const block = (await pageBlock('The first hit')).replaceAll('MODEL', model).replace(/^#.*\n/, '')
    const [made = '', used = ''] = block.split(/^(?=curl)/m).map((command) => `URL=${url}\n${command}`)
    const [, id = ''] = /^x-session-id: (\S+)/m.exec(await shell(rig, made)) ?? []
    await eventually(async () =>
      expect(await shell(rig, used.replace(' ID', ` ${id}`))).toContain('x-context-cache: hit'),
    )
  })

  test('a context is made, used on its pod and on another one, and deleted', async () => {
    const { url } = bed()
    const id = await create(url)
    const pod = await podOf(url, id)
    const same = await use(url, id)
    expect(same.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu/)
    expect(cachedTokens(same.body)).toBeGreaterThan(100)
    await eventually(async () => expect((await contextOf(url, id)).body).toMatchObject({ turns: 2 }))

    // The pod goes, and its KV is loaded from the store on another one.
    const pods = await bed().rig.kubectl(
      'get',
      'pods',
      '-l',
      'app=engines',
      '-o',
      'jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\\n"}{end}',
    )
    const [name = ''] =
      pods
        .split('\n')
        .find((line) => line.endsWith(` ${pod.split(':')[0]}`))
        ?.split(' ') ?? []
    await bed().rig.kubectl('delete', 'pod', name, '--wait=false')
    const other = await use(url, id)
    expect(other.headers.get('x-context-cache')).toMatch(/^hit; tier=store/)
    expect(cachedTokens(other.body)).toBeGreaterThan(100)
    await eventually(async () => expect(await podOf(url, id)).not.toBe(pod))

    expect((await contextOf(url, id, { method: 'DELETE' })).body).toMatchObject({ deleted: true })
    expect((await contextOf(url, id)).status).toBe(404)
  })

  test.each(['/slots', '/metrics', '/v1/load_lora_adapter', '/v1/context/../../slots', '/health'])(
    '%s reaches no pod',
    async (path) => {
      const { url } = bed()
      expect((await call(`${url}${path}`)).status).toBe(404)
    },
  )

  test('internal headers of a client are worth nothing', async () => {
    const { url } = bed()
    const id = await create(url)
    const pod = await podOf(url, id)
    const forged = {
      'x-gateway-destination-endpoint': '10.244.0.1:1',
      'x-context-cache': 'hit',
      'x-session-expires-at': '1',
    }
    const answer = await use(url, id, forged)
    expect([answer.status, answer.headers.get('x-context-cache')]).toEqual([
      200,
      expect.stringMatching(/^hit; tier=gpu/),
    ])
    expect(await podOf(url, id)).toBe(pod)
    const without = await call(`${url}/v1/completions`, { body, headers: forged })
    expect([without.status, without.headers.get('x-context-cache')]).toEqual([200, null])
    expect(cachedTokens(without.body)).toBe(0)
  })

  test('another tenant finds no context', async () => {
    const { url } = bed()
    const id = await create(url)
    const headers = { authorization: 'Bearer another-key' }
    expect((await contextOf(url, id, { headers })).status).toBe(404)
    expect((await use(url, id, headers)).headers.get('x-context-cache')).toMatch(/^miss/)
  })
}
