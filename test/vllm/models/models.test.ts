import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { runInstaller } from '../../../playground/install/install-once.ts'
import { prepareFleet } from '../../../playground/vllm/prepare.ts'
import { type RunningVllmFleet, startVllmFleet, vllmFolder } from '../../../playground/vllm/start-vllm-fleet.ts'
import { call } from '../../integration/support/client.ts'
import { metric } from '../../integration/support/metrics.ts'
import { cacheLine, create, createdId, remove, untilStored, use, view } from '../../integration/support/sessions.ts'
import type { Stack } from '../../integration/support/stack.ts'
import { useStack } from '../../integration/support/use-stack.ts'
import { eventually } from '../../support/eventually.ts'
import { freshPrompt } from '../support/prompts.ts'

/** The model of two pods, its adapter, and the model of a third pod, which asks for the key of the tests' clients. */
const [chat, adapter, code] = ['chat', 'chat-adapter', 'code']
const engineKey = 'test-key'

let fleet: RunningVllmFleet | undefined
let folder = ''
beforeAll(async () => {
  const options = { env: process.env, onLine: (line: string) => process.stdout.write(`${line}\n`) }
  const prepared = await prepareFleet({ ...options, folder: vllmFolder(options.env), report: options.onLine })
  folder = await mkdtemp(join(tmpdir(), 'vllm-models-'))
  const model = join(vllmFolder(options.env), prepared.modelPath)
  const script = new URL('make-models.py', import.meta.url).pathname
  await runInstaller([prepared.interpreter, script, model, folder], options)
  const withAdapter = {
    'served-model-name': chat,
    'enable-lora': true as const,
    'max-lora-rank': 8,
    'lora-modules': `${adapter}=${join(folder, 'adapter')}`,
  }
  const withKey = { model: join(folder, 'code'), 'served-model-name': code, 'api-key': engineKey }
  fleet = await startVllmFleet({ ...options, pods: [withAdapter, withAdapter, withKey] })
}, 900_000)
afterAll(async () => {
  await fleet?.stop()
  await rm(folder, { recursive: true, force: true })
}, 60_000)

const description = () => {
  if (fleet === undefined) throw new Error('the fleet did not start')
  return fleet.description
}

/** One Envoy cluster and a pool for each model. */
const useModels = (apiKey: string): Stack => {
  const env: Record<string, string> = { CONNECTOR: 'lmcache', LMCACHE_URL: 'http://127.0.0.1:1', PODS: '' }
  return useStack({
    env,
    pods: async () => {
      const { pods, coordinatorUrl: url } = description()
      const instances = pods.map(({ address, lmcacheInstance }) => `${address}=${lmcacheInstance}`)
      const pool = (name: string, numbers: readonly number[], key: object = {}) => ({
        name,
        pods: numbers.map((number) => pods[number]?.address),
        kv: { connector: 'lmcache', lmcache: { url, instances }, prefillMsPerToken: 1000 },
        ...key,
      })
      env['CTX_POOLS'] = JSON.stringify([pool('chat', [0, 1]), pool('code', [2], { apiKey })])
      return pods.map(({ address }) => ({ address }))
    },
  })
}

const bodyOf = (model: string, prompt = freshPrompt(300)) => ({
  model,
  prompt,
  max_tokens: 2,
  temperature: 0,
  ignore_eos: true,
})

const cachedTokens = ({ text }: { readonly text: string }): number =>
  Number(/"cached_tokens":(\d+)/.exec(text)?.[1] ?? Number.NaN)

const roundRobin = { 'routing-strategy': 'round-robin' }

const ready = (stack: Stack) => call(`${stack.gateway().adminUrl}/readyz`)

describe('two models, an adapter, and an engine with a key', () => {
  const stack = useModels(engineKey)

  test.each([
    { model: chat, pods: [0, 1], tier: 'store' },
    { model: adapter, pods: [0, 1], tier: 'store' },
    { model: code, pods: [2], tier: 'gpu' },
  ])('a session of $model lives on the pods of its model, and finds its KV there', async ({ model, pods, tier }) => {
    const body = bodyOf(model)
    const id = await createdId(stack, { body })
    const addresses = pods.map((number) => description().pods[number]?.address)
    expect(addresses).toContain((await untilStored(stack, id, 1)).kv.pod)
    const turns: { readonly line: string | null; readonly cached: number }[] = []
    for (let turn = 2; turn <= 4; turn += 1) {
      const response = await use(stack, id, { body, headers: roundRobin })
      turns.push({ line: cacheLine(response), cached: cachedTokens(response) })
      const seen = await eventually(async () => {
        const session = await view(stack, id)
        expect(session.turns).toBe(turn)
        return session
      })
      expect(addresses).toContain(seen.kv.pod)
    }
    const { kv } = await view(stack, id)
    // vLLM always computes the last token of a prompt.
    const least = (kv.stored?.tokens ?? 0) - 1
    expect(turns.filter(({ line, cached }) => !line?.startsWith('hit;') || cached < least)).toEqual([])
    expect(turns).toContainEqual(expect.objectContaining({ line: expect.stringContaining(`tier=${tier};`) }))
    await remove(stack, id)
  })

  test('an adapter does not start from KV of the model below it', async () => {
    const prompt = freshPrompt(300)
    const id = await createdId(stack, { body: bodyOf(chat, prompt) })
    await untilStored(stack, id, 1)
    const answers = [1, 2].map(() => create(stack, { body: bodyOf(adapter, prompt), headers: roundRobin }))
    const cached = (await Promise.all(answers)).map(cachedTokens)
    expect(cached).toEqual([0, 0])
    await remove(stack, id)
  })

  test('a new session of an adapter goes to the pod that runs it, one of the model to the idler pod', async () => {
    const [idle, busy] = description().pods
    const leaving = new AbortController()
    const long = fetch(`${busy?.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...bodyOf(adapter), max_tokens: 7_000, stream: true }),
      signal: leaving.signal,
    })
    const podOf = async (model: string): Promise<string | null> => {
      const id = await createdId(stack, { body: bodyOf(model), headers: { 'routing-strategy': 'least-request' } })
      const { kv } = await untilStored(stack, id, 1)
      await remove(stack, id)
      return kv.pod
    }
    await eventually(async () => expect(await podOf(adapter)).toBe(busy?.address))
    expect(await podOf(chat)).toBe(idle?.address)
    leaving.abort()
    await long.then((answer) => answer.body?.cancel()).catch(() => undefined)
  })

  test('nothing is reported', async () => {
    expect(await ready(stack)).toMatchObject({ status: 200, body: { ready: true, degraded: false, warnings: [] } })
  })
})

describe('an engine that refuses the gateway', () => {
  const stack = useModels('a-wrong-key')

  test('answers turns unchanged, and the log, /readyz and a metric say why, once', async () => {
    const body = bodyOf(code)
    const id = await createdId(stack, { body })
    const turns = [await use(stack, id, { body }), await use(stack, id, { body })]
    expect(turns.map(({ status }) => status)).toEqual([200, 200])
    expect(turns.map(cacheLine)).toEqual(turns.map(() => expect.stringMatching(/^(miss|none); reason=/)))
    const address = description().pods[2]?.address
    const text = expect.stringMatching(`^The engine ${address} refuses .*401.*set apiKey of the pool code$`)
    expect(await ready(stack)).toMatchObject({ status: 200, body: { ready: true, warnings: [{ text }] } })
    expect(await metric(stack, 'warnings', { kind: 'engine_unauthorized' })).toBe(1)
    expect(stack.output().match(/refuses the gateway's key/g)).toHaveLength(1)
    expect(stack.output()).not.toContain('a-wrong-key')
  })

  test('leaves the other pool as it is', async () => {
    const body = bodyOf(chat)
    const id = await createdId(stack, { body })
    await untilStored(stack, id, 1)
    expect(cacheLine(await use(stack, id, { body }))).toMatch(/^hit;/)
  })
})
