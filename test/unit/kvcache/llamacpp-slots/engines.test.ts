import { afterAll, afterEach, describe, expect, test } from '@jest/globals'
import { createEngines } from '../../../../src/kvcache/llamacpp-slots/engines.ts'
import { createSlotClient } from '../../../../src/kvcache/slots/slot-client.ts'
import { json, type ScriptedEngine, startScriptedEngine } from '../scripted-engine.ts'

/** What llama-server tells of itself, as far as it counts. */
const props = {
  build_info: 'b11669-Debian',
  model_path: '/models/tiny.gguf',
  model_ftype: 'F16',
  total_slots: 2,
  media_marker: '<__media_1__>',
  default_generation_settings: { n_ctx: 4096 },
}
const model = { id: '/models/tiny.gguf', created: 1, meta: { n_vocab: 260, n_params: 3214592, size: 6433792 } }

/** Where Hugging Face's cache keeps a file of a commit. */
const inSnapshot = (commit: string) => `/hub/models--a--tiny/snapshots/${commit.repeat(40)}/tiny.gguf`

interface Self {
  /** The last task of its slot. */
  task?: number
  props: object | undefined
  models: object
  adapters?: readonly object[]
  /** In the gateway's configuration. */
  modelVersion?: string
}

const client = createSlotClient({ lateTimeoutMs: 60_000, callTimeoutMs: 5_000 })
const engineFor = (pod: string, modelVersion?: string) => createEngines(client, () => [pod], modelVersion)
const engines: ScriptedEngine[] = []
const start = async (self: Self): Promise<ScriptedEngine> => {
  const engine = await startScriptedEngine((request, response) => {
    if (request.url === '/slots')
      return json([{ id: 0, is_processing: false, id_task: self.task ?? 5 }])(request, response)
    const answers = { '/props': self.props, '/v1/models': self.models, '/lora-adapters': self.adapters }
    const answer = answers[request.url as keyof typeof answers]
    json(answer ?? {}, answer === undefined ? 404 : 200)(request, response)
  })
  engines.push(engine)
  return engine
}
afterAll(() => client.close())
afterEach(() => Promise.all(engines.splice(0).map((engine) => engine.close())))

const never = new AbortController().signal
const identify = async (self: Self) => {
  const engine = await start(self)
  return engineFor(engine.pod, self.modelVersion).look(engine.pod, never)
}
const usual: Self = { props, models: { data: [model] } }

describe('an engine’s fingerprint', () => {
  test.each<[string, Self]>([
    [
      'it was started anew, later',
      { props: { ...props, media_marker: '<__media_2__>' }, models: { data: [{ ...model, created: 2 }] } },
    ],
    [
      'its model lies in another folder',
      { props: { ...props, model_path: '/mnt/tiny.gguf' }, models: { data: [{ ...model, id: '/mnt/tiny.gguf' }] } },
    ],
    ['it tells more of itself', { props: { ...props, chat_template: 'x' }, models: { data: [model], models: [] } }],
  ])('is the same when %s', async (_name, self) => {
    expect((await identify(self)).fingerprint).toBe((await identify(usual)).fingerprint)
  })

  test.each<[string, Self]>([
    ['build', { ...usual, props: { ...props, build_info: 'b2' } }],
    ['model file', { ...usual, props: { ...props, model_path: 'other.gguf' } }],
    ['commit of its model', { ...usual, props: { ...props, model_path: inSnapshot('a') } }],
    ['version of its model', { ...usual, modelVersion: '2' }],
    ['number of slots', { ...usual, props: { ...props, total_slots: 4 } }],
    ['context', { ...usual, props: { ...props, default_generation_settings: { n_ctx: 8192 } } }],
    ['model size', { ...usual, models: { data: [{ ...model, meta: { ...model.meta, size: 1 } }] } }],
    ['adapter', { ...usual, adapters: [{ id: 0, path: 'a.gguf', scale: 1 }] }],
    ['scale of an adapter', { ...usual, adapters: [{ id: 0, path: 'a.gguf', scale: 0.5 }] }],
  ])('differs with another %s', async (_name, self) => {
    const [other, mine] = [await identify(self), await identify(usual)]
    expect(other.fingerprint).toMatch(/^[0-9a-f]{32}$/)
    expect(other.fingerprint).not.toBe(mine.fingerprint)
  })

  test('differs between two commits and two versions of its model', async () => {
    const of = async (model_path: string, modelVersion: string) =>
      (await identify({ ...usual, props: { ...props, model_path }, modelVersion })).fingerprint
    const known = [
      of(inSnapshot('a'), '1'),
      of(inSnapshot('b'), '1'),
      of(inSnapshot('a'), '2'),
      of(inSnapshot('a'), '1'),
    ]
    expect(new Set(await Promise.all(known)).size).toBe(3)
  })

  test('depends on the model alone when the engine has no /props', async () => {
    const self = (description: string): Self => ({ props: undefined, models: { data: [{ id: 'tiny', description }] } })
    const [one, same, other] = [await identify(self('a')), await identify(self('a')), await identify(self('b'))]
    expect([one.fingerprint === same.fingerprint, one.fingerprint === other.fingerprint]).toEqual([true, false])
  })
})

describe('a look at an engine', () => {
  const identity = ['GET /props', 'GET /v1/models', 'GET /lora-adapters']

  test('asks who the engine is once for each of its starts', async () => {
    const self: Self = { ...usual, task: 5 }
    const engine = await start(self)
    const engines = engineFor(engine.pod)
    for (const task of [5, 5, 6, 0]) {
      self.task = task
      if (task === 0) self.props = { ...props, build_info: 'b2' }
      await engines.look(engine.pod, never)
    }
    expect(engine.requests.filter((line) => line !== 'GET /slots').sort()).toEqual([...identity, ...identity].sort())
    const { fingerprint } = await engines.look(engine.pod, never)
    expect(fingerprint).toBe((await identify(self)).fingerprint)
  })

  test('asks again after a call that failed', async () => {
    const self: Self = { ...usual }
    const engine = await start(self)
    const engines = engineFor(engine.pod)
    await engines.look(engine.pod, never)
    await expect(engines.look(engine.pod, AbortSignal.abort())).rejects.toThrow('aborted')
    await engines.look(engine.pod, never)
    expect(engine.requests.filter((line) => line === 'GET /props')).toHaveLength(2)
  })

  test('fails while the engine loads its model', async () => {
    const engine = await startScriptedEngine(json({ error: {} }, 503))
    engines.push(engine)
    await expect(engineFor(engine.pod).look(engine.pod, never)).rejects.toThrow('503')
  })

  test('calls a pod that is not configured only where a claim names it', async () => {
    const engine = await start(usual)
    const engines = engineFor('other:1')
    await expect(engines.look(engine.pod, never)).rejects.toThrow('not configured')
    expect(engine.requests).toEqual([])
    expect((await engines.look(engine.pod, never, { isClaimed: true })).slots).toHaveLength(1)
  })
})
