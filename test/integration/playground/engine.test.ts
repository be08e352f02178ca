import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { type RunningEngine, startEngine } from '../../../playground/start-engine.ts'
import { eventually } from '../../support/eventually.ts'

interface Slot {
  readonly is_processing: boolean
  readonly n_prompt_tokens: number
  readonly id_task?: number
}

const long = { prompt: 'On and on.', max_tokens: 30_000, stream: true }
let folder = ''
let engine: RunningEngine

const start = (slots = 2): Promise<RunningEngine> =>
  startEngine({ name: 'pod', kvDirectory: folder, slots, contextTokensPerSlot: 32_768 })
const post = (path: string, body: object, init: RequestInit = {}): Promise<Response> =>
  fetch(engine.url + path, {
    method: 'POST',
    body: JSON.stringify({ model: 'tiny-random', temperature: 0, ...body }),
    ...init,
  })
const complete = async (body: object): Promise<{ text: string; cached: number }> => {
  const { choices, usage } = JSON.parse(await (await post('/v1/completions', body)).text())
  return { text: choices[0].text, cached: usage.prompt_tokens_details.cached_tokens }
}
const slot = async (id: number): Promise<Slot> => JSON.parse(await (await fetch(`${engine.url}/slots`)).text())[id]
const busy = (id: number) => eventually(async () => (await slot(id)).is_processing)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'engine-'))
  engine = await start()
})
afterEach(() => eventually(async () => !(await slot(0)).is_processing && !(await slot(1)).is_processing))
afterAll(async () => {
  await engine.child.stop()
  await rm(folder, { recursive: true, force: true })
})

describe('the embedded engine', () => {
  test.each([
    ['a body that is no JSON', '/v1/completions', '{', 400, /not a JSON object/],
    ['a body without a prompt', '/v1/completions', '{"model":"tiny-random"}', 400, /^'prompt' is missing/],
    ['a field of another type', '/v1/completions', '{"model":"tiny-random","prompt":"a","stop":1}', 400, /^'stop': /],
    ['an unknown model', '/v1/completions', '{"model":"x","prompt":"a"}', 404, /^The model 'x' does not exist/],
    [
      'a prompt that is too long',
      '/v1/completions',
      JSON.stringify({ model: 'tiny-random', prompt: 'x'.repeat(33_000) }),
      400,
      /exceeds the context of 32768/,
    ],
    ['an unknown path', '/v2', '{}', 404, /^File Not Found$/],
  ])('%s is refused', async (_name, path, body, status, message) => {
    const response = await fetch(engine.url + path, { method: 'POST', body })
    const error = { code: status, message: expect.stringMatching(message) }
    expect([response.status, await response.json()]).toMatchObject([status, { error }])
  })

  test('a prompt without a slot goes where most of it lies', async () => {
    const prompts = ['first '.repeat(20), 'second '.repeat(20)]
    for (const [id, prompt] of prompts.entries()) await complete({ prompt, id_slot: id, max_tokens: 2 })
    const answers = await Promise.all(prompts.map((prompt) => complete({ prompt, max_tokens: 2 })))
    expect(answers.map(({ cached }) => cached)).toEqual([119, 139])
  })

  test('cold, reused and restored KV lead to the same answer', async () => {
    const body = { prompt: 'The same answer, whatever happens. '.repeat(5), max_tokens: 12 }
    await post('/slots/0?action=erase', {})
    const cold = await complete({ ...body, id_slot: 0 })
    const reused = await complete({ ...body, id_slot: 0 })
    await post('/slots/0?action=save', { filename: 'a.kv' })
    await post('/slots/1?action=restore', { filename: 'a.kv' })
    const restored = await complete({ ...body, id_slot: 1 })
    expect([cold.cached, reused.cached, restored.cached]).toEqual([0, 174, 174])
    expect([reused.text, restored.text]).toEqual([cold.text, cold.text])
  })

  test.each([
    ['a file that is missing', '/slots/0?action=restore', { filename: 'none.kv' }, /^Unable to restore slot: /],
    ['a path out of the folder', '/slots/0?action=save', { filename: '../a.kv' }, /^Invalid filename$/],
    ['an unknown slot', '/slots/7?action=erase', {}, /^Invalid slot ID$/],
    ['an unknown action', '/slots/0?action=swap', {}, /^Invalid action$/],
  ])('an action on %s is refused as by llama-server', async (_name, path, body, message) => {
    const response = await post(path, body)
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 400, message: expect.stringMatching(message), type: 'invalid_request_error' } },
    ])
  })

  test('an action on a busy slot waits for its end, and another slot is saved meanwhile', async () => {
    const leaving = new AbortController()
    const answer = await post('/v1/completions', { ...long, id_slot: 0 }, { signal: leaving.signal })
    await busy(0)
    const deferred = post('/slots/0?action=save', { filename: 'deferred.kv' })
    expect((await post('/slots/1?action=save', { filename: 'beside.kv' })).status).toBe(200)
    expect((await slot(0)).is_processing).toBe(true)
    leaving.abort()
    await answer.text().catch(() => undefined)
    expect((await deferred).status).toBe(200)
  })

  test('a client that leaves ends its answer, and the slot keeps what was computed', async () => {
    const leaving = new AbortController()
    const answer = await post('/v1/completions', { ...long, id_slot: 0 }, { signal: leaving.signal })
    await busy(0)
    leaving.abort()
    await answer.text().catch(() => undefined)
    await eventually(async () => !(await slot(0)).is_processing)
    expect((await slot(0)).n_prompt_tokens).toBeLessThan(30_000)
    expect((await complete({ prompt: long.prompt, id_slot: 0, max_tokens: 1 })).cached).toBe(9)
  })

  test('an idle connection stays open until the client closes it', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const get = (): Promise<boolean> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(`${engine.url}/health`, { agent }, (response) => {
          expect(response.headers['keep-alive']).toBeUndefined()
          response.resume().on('end', () => resolve(request.reusedSocket))
        })
        request.on('error', reject).end()
      })
    await get()
    await delay(50)
    expect(await get()).toBe(true)
    agent.destroy()
  })

  describe('after SIGTERM', () => {
    let ending: RunningEngine
    beforeEach(async () => {
      ending = await start(1)
    })

    const stopDuring = async (maxTokens: number) => {
      const body = JSON.stringify({ ...long, model: 'tiny-random', max_tokens: maxTokens })
      const answer = await fetch(`${ending.url}/v1/completions`, { method: 'POST', body })
      const stopped = ending.child.stop({ graceMs: 30_000 })
      await eventually(() => ending.child.output().some((line) => line.includes('"stopping"')))
      return { answer, stopped }
    }

    test('an answer is completed before the engine ends', async () => {
      const { answer, stopped } = await stopDuring(60)
      expect(await answer.text()).toMatch(/data: \[DONE\]\n\n$/)
      expect(await stopped).toEqual({ code: 0, signal: undefined })
    })
  })
})
