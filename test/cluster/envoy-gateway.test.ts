import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { z } from 'zod'
import { call, model } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { applyEnvoyGatewayFiles, startEnvoyGateway } from './rig/envoy-gateway.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, gateways, projectImages } from './rig/workloads.ts'

let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  const kvDirectory = join(rig.folder, 'kv')
  await mkdir(kvDirectory)
  await rig.apply(engines({ kvDirectory, replicas: 2 }))
  const env = { CTX_ROUTING_KUBERNETES_SERVICE: 'engines' }
  await rig.apply(gateways({ kvDirectory, replicas: 1, env }))
  await startEnvoyGateway(rig)
  url = await applyEnvoyGatewayFiles(rig, '1.40.0')
  await rig.kubectl('rollout', 'status', 'deployment', '--timeout=60s')
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

const prompt = 'What the pods of a cluster have in common is a network. '.repeat(12)
const body = { model, prompt, max_tokens: 4, temperature: 0 }
const contextOf = (id: string, init: Parameters<typeof call>[1] = {}) => call(`${url}/v1/context/${id}`, init)

const create = async (): Promise<string> => {
  const created = await call(`${url}/v1/context`, { body })
  expect([created.status, created.text]).toEqual([200, expect.anything()])
  const id = created.headers.get('x-session-id') ?? ''
  // Envoy Gateway's access log reports the end of a turn up to a second later; then its KV is stored.
  await eventually(async () => expect((await contextOf(id)).body).toMatchObject({ kv: { stored: { turn: 1 } } }))
  return id
}
const use = (id: string, headers: Record<string, string> = {}) =>
  call(`${url}/v1/completions`, {
    body: { ...body, prompt: `${prompt} It is` },
    headers: { 'x-session-id': id, ...headers },
  })
const podOf = async (id: string): Promise<string> => {
  const { kv } = z.object({ kv: z.object({ pod: z.string() }) }).parse((await contextOf(id)).body)
  return kv.pod
}
/** Tokens of the prompt that the engine did not compute. */
const cachedTokens = (answer: unknown): number =>
  z.object({ usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.int() }) }) }).parse(answer).usage
    .prompt_tokens_details.cached_tokens

test('a context is made, used on its pod and on another one, and deleted', async () => {
  const id = await create()
  const pod = await podOf(id)
  const same = await use(id)
  expect(same.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu/)
  expect(cachedTokens(same.body)).toBeGreaterThan(100)
  await eventually(async () => expect((await contextOf(id)).body).toMatchObject({ turns: 2 }))

  // The pod goes, and its KV is loaded from the store on another one.
  const pods = await rig.kubectl(
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
  await rig.kubectl('delete', 'pod', name, '--wait=false')
  const other = await use(id)
  expect(other.headers.get('x-context-cache')).toMatch(/^hit; tier=store/)
  expect(cachedTokens(other.body)).toBeGreaterThan(100)
  await eventually(async () => expect(await podOf(id)).not.toBe(pod))

  expect((await contextOf(id, { method: 'DELETE' })).body).toMatchObject({ deleted: true })
  expect((await contextOf(id)).status).toBe(404)
})

test.each(['/slots', '/metrics', '/v1/load_lora_adapter', '/v1/context/../../slots', '/health'])(
  '%s reaches no pod',
  async (path) => {
    expect((await call(`${url}${path}`)).status).toBe(404)
  },
)

test('internal headers of a client are worth nothing', async () => {
  const id = await create()
  const pod = await podOf(id)
  const forged = {
    'x-gateway-destination-endpoint': '10.244.0.1:1',
    'x-context-cache': 'hit',
    'x-session-expires-at': '1',
  }
  const answer = await use(id, forged)
  expect([answer.status, answer.headers.get('x-context-cache')]).toEqual([200, expect.stringMatching(/^hit; tier=gpu/)])
  expect(await podOf(id)).toBe(pod)
  const without = await call(`${url}/v1/completions`, { body, headers: forged })
  expect([without.status, without.headers.get('x-context-cache')]).toEqual([200, null])
  expect(cachedTokens(without.body)).toBe(0)
})

test('another tenant finds no context', async () => {
  const id = await create()
  const headers = { authorization: 'Bearer another-key' }
  expect((await contextOf(id, { headers })).status).toBe(404)
  expect((await use(id, headers)).headers.get('x-context-cache')).toMatch(/^miss/)
})

test('a body of 1 MiB passes, one of 17 MiB does not', async () => {
  const id = await create()
  const padded = (bytes: number) => ({ ...body, user: 'x'.repeat(bytes) })
  const send = (bytes: number) =>
    call(`${url}/v1/completions`, { body: padded(bytes), headers: { 'x-session-id': id } })
  expect((await send(1 << 20)).status).toBe(200)
  expect((await send(17 << 20)).status).toBe(413)
})

test('without a gateway turns go on, and contexts are answered 503', async () => {
  const id = await create()
  await rig.kubectl('scale', 'deployment', 'context-cache-gateway', '--replicas=0')
  await rig.kubectl('wait', 'pods', '-l', 'app=context-cache-gateway', '--for=delete', '--timeout=60s')
  expect((await use(id)).status).toBe(200)
  expect((await contextOf(id)).status).toBe(503)
})
