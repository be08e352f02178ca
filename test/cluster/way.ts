import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { call, model } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { pageBlock, shell } from './rig/follow-page.ts'
import type { Rig } from './rig/rig.ts'

/** A cluster, and where its Envoys answer. */
export interface Bed {
  readonly rig: Rig
  readonly url: string
  /** Default: that of the embedded engine. */
  readonly model?: string
}
type Gateway = Pick<Bed, 'url' | 'model'>

// More than a chunk of LMCache.
const prompt = 'What the pods of a cluster have in common is a network. '.repeat(15)
export const body = { model, prompt, max_tokens: 4, temperature: 0 }
const bodyFor = (gateway: Gateway) => ({ ...body, model: gateway.model ?? model })
const contextOf = (url: string, id: string, init: Parameters<typeof call>[1] = {}) =>
  call(`${url}/v1/context/${id}`, init)

/** Creates a context, and waits until its KV is stored. */
export const create = (gateway: Gateway): Promise<string> => eventually(() => createOnce(gateway))

/** A create that Envoy had to send to another pod is not stored. */
const createOnce = async (gateway: Gateway): Promise<string> => {
  const created = await call(`${gateway.url}/v1/context`, { body: bodyFor(gateway) })
  expect([created.status, created.text]).toEqual([200, expect.anything()])
  const id = created.headers.get('x-session-id') ?? ''
  // Envoy Gateway's access log reports the end of a turn up to a second later; then its KV is stored.
  const isStored = async () =>
    expect((await contextOf(gateway.url, id)).body).toMatchObject({ kv: { stored: { turn: 1 } } })
  await eventually(isStored, { timeoutMs: 10_000 })
  return id
}
/** A turn of a session. */
export const use = (gateway: Gateway, id: string, headers: Record<string, string> = {}) =>
  call(`${gateway.url}/v1/completions`, {
    body: { ...bodyFor(gateway), prompt: `${prompt} It is` },
    headers: { 'x-session-id': id, ...headers },
  })
const podOf = async (url: string, id: string): Promise<string> => {
  const { kv } = z.object({ kv: z.object({ pod: z.string() }) }).parse((await contextOf(url, id)).body)
  return kv.pod
}
/** Tokens of the prompt that the engine did not compute. */
const cachedTokens = (answer: unknown): number =>
  z.object({ usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.int() }).nullish() }) }).parse(answer)
    .usage.prompt_tokens_details?.cached_tokens ?? 0

/** A context with a turn on its pod. Not before pods are known: for 10 s a new one gets no turns while another is. */
const usedOnItsPod = (gateway: Bed, headers: Readonly<Record<string, string>> = {}) =>
  eventually(async () => {
    const id = await create(gateway)
    const pod = await podOf(gateway.url, id)
    const same = await use(gateway, id, headers)
    expect([same.status, same.headers.get('x-context-cache')]).toEqual([200, expect.stringMatching(/^hit; tier=gpu/)])
    return { id, pod, same }
  })

/** What holds of each way into a cluster. */
export const describeWay = (bed: () => Bed): void => {
  test('the commands of docs/kubernetes.md lead to a hit', async () => {
    const { rig, url } = bed()
    const block = (await pageBlock('The first hit'))
      .replaceAll('MODEL', bodyFor(bed()).model)
      .replaceAll('A long text that many requests begin with', prompt)
      .replace(/^#.*\n/, '')
    const [made = '', used = ''] = block.split(/^(?=curl)/m).map((command) => `URL=${url}\n${command}`)
    const [, id = ''] = /^x-session-id: (\S+)/m.exec(await shell(rig, made)) ?? []
    await eventually(async () =>
      expect(await shell(rig, used.replace(' ID', ` ${id}`))).toContain('x-context-cache: hit'),
    )
  })

  test('a context is made, used on its pod and on another one, and deleted', async () => {
    const { rig, url } = bed()
    const { id, pod, same } = await usedOnItsPod(bed())
    expect(cachedTokens(same.body)).toBeGreaterThan(100)
    await eventually(async () => expect((await contextOf(url, id)).body).toMatchObject({ turns: 2 }))

    // The pod goes, and its KV is loaded from the store on another one.
    const ofPod = `status.podIP=${pod.split(':')[0]}`
    await rig.kubectl('delete', 'pods', '--field-selector', ofPod, '--wait=false')
    const other = await eventually(async () => {
      const answer = await use(bed(), id)
      expect(answer.headers.get('x-context-cache')).toMatch(/^hit; tier=store/)
      return answer
    })
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
    const forged = {
      'x-gateway-destination-endpoint': '10.244.0.1:1',
      'x-context-cache': 'hit',
      'x-session-expires-at': '1',
    }
    const { id, pod } = await usedOnItsPod(bed(), forged)
    expect(await podOf(url, id)).toBe(pod)
    const without = await call(`${url}/v1/completions`, { body: bodyFor(bed()), headers: forged })
    expect([without.status, without.headers.get('x-context-cache')]).toEqual([200, null])
    expect(cachedTokens(without.body)).toBe(0)
  })

  test("a client's own name for its conversation leads to a hit", async () => {
    const { url } = bed()
    const named = () =>
      call(`${url}/v1/completions`, { body: bodyFor(bed()), headers: { 'session-id': 'of a client' } })
    await eventually(async () => expect((await named()).headers.get('x-context-cache')).toMatch(/^hit/), {
      timeoutMs: 10_000,
    })
  })

  test('another tenant finds no context', async () => {
    const { url } = bed()
    const id = await create(bed())
    const headers = { authorization: 'Bearer another-key' }
    expect((await contextOf(url, id, { headers })).status).toBe(404)
    const used = await use(bed(), id, headers)
    expect([used.headers.get('x-context-cache'), cachedTokens(used.body)]).toEqual([expect.stringMatching(/^miss/), 0])
  })
}

export const respond = (url: string, part: object = {}) =>
  call(`${url}/v1/responses`, { body: { model, input: 'My name is Ada.', max_output_tokens: 4, ...part } })

/** What holds of each way where responses are kept, as `installByPage` has it. */
export const testResponses = (url: () => string): void => {
  test('a response is continued by its id', () =>
    // Where several Envoys learn of a route one after the other, not at once.
    eventually(async () => {
      const first = await respond(url())
      expect(first.body).toMatchObject({ id: expect.any(String), store: true })
      const { id } = z.object({ id: z.string() }).parse(first.body)
      const next = await respond(url(), { previous_response_id: id })
      expect([next.status, next.headers.get('x-context-cache')]).toEqual([200, expect.any(String)])
      expect(next.body).toMatchObject({ previous_response_id: id, store: true })
      const unknown = await respond(url(), { previous_response_id: 'resp_unknown' })
      expect(unknown.body).toMatchObject({ error: { code: 'previous_response_not_found' } })
      const items = await call(`${url()}/v1/responses/${id}/input_items`)
      expect(items.body).toMatchObject({ data: [{ type: 'message' }] })
      expect((await call(`${url()}/v1/conversations`, { body: {} })).body).toMatchObject({ object: 'conversation' })
    }))
}
