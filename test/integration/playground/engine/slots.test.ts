// Two engines that share a folder: KV moves from one to the other through llama-server's slots dialect.
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { ensureRandomModel } from '../../../../playground/engine/gguf/ensure-random-model.ts'
import { defaultRandomModel } from '../../../../playground/engine/gguf/random-model.ts'
import { createEngineClient, textOf } from './support/engine-client.ts'
import { createEngineProcesses } from './support/engine-process.ts'

jest.setTimeout(120_000)

describe('two engines with one folder', () => {
  const processes = createEngineProcesses()
  let root = ''
  let kvFolder = ''
  let a: ReturnType<typeof createEngineClient>
  let b: ReturnType<typeof createEngineClient>
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'engine-slots-'))
    kvFolder = join(root, 'kv')
    const args = ['--kv-dir', kvFolder, '--context-tokens', '4096', '--slots', '2', '--log-level', 'warn']
    a = createEngineClient((await processes.start([...args, '--name', 'a'])).url)
    b = createEngineClient((await processes.start([...args, '--name', 'b'])).url)
  })
  afterAll(async () => {
    await processes.stopAll()
    await rm(root, { recursive: true, force: true })
  })

  test('a prompt computed on one is there on the other, with the same answer', async () => {
    const prompt = textOf(3000, 1)
    const cold = await a.complete(prompt, { id_slot: 0 })
    const again = await a.complete(prompt, { id_slot: 0 })
    const saved = await a.slotAction(0, 'save', { filename: 'one.bin' })
    const restored = await b.slotAction(1, 'restore', { filename: 'one.bin' })
    const warm = await b.complete(prompt, { id_slot: 1 })
    expect([cold.cachedTokens, again.cachedTokens, warm.cachedTokens]).toEqual([0, 2999, 2999])
    expect([again.text, warm.text]).toEqual([cold.text, cold.text])
    const bytes = (await readFile(join(kvFolder, 'one.bin'))).length
    expect(saved).toEqual({
      status: 200,
      body: {
        id_slot: 0,
        filename: 'one.bin',
        n_saved: 3015,
        n_written: bytes,
        timings: { save_ms: expect.any(Number) },
      },
    })
    expect(restored).toEqual({
      status: 200,
      body: {
        id_slot: 1,
        filename: 'one.bin',
        n_restored: 3015,
        n_read: bytes,
        timings: { restore_ms: expect.any(Number) },
      },
    })
    expect(await readdir(kvFolder)).toEqual(['one.bin'])
  })

  test('a conversation goes on from one to the other and back', async () => {
    const first = await a.complete(textOf(300, 2), { id_slot: 0 })
    const prompt = textOf(300, 2) + first.text
    await a.slotAction(0, 'save', { filename: 'turn.bin' })
    await b.slotAction(0, 'restore', { filename: 'turn.bin' })
    const second = await b.complete(`${prompt} and then`, { id_slot: 0 })
    expect(second.cachedTokens).toBe(315)
    await b.slotAction(0, 'save', { filename: 'turn.bin' })
    await a.slotAction(1, 'restore', { filename: 'turn.bin' })
    const third = await a.complete(`${prompt} and then${second.text}!`, { id_slot: 1 })
    expect(third.cachedTokens).toBe(315 + ' and then'.length + 16)
  })

  test('a slot reports what it holds and for whom', async () => {
    await a.complete(textOf(100, 3), { id_slot: 0 }, { 'x-session-id': 'ctx_one' })
    const before = (await a.slots())[0]
    expect(before).toEqual({
      id: 0,
      id_task: expect.any(Number),
      n_ctx: 4096,
      is_processing: false,
      n_tokens: 115,
      session: createHash('sha256').update('ctx_one').digest('hex'),
    })
    await a.slotAction(0, 'save', { filename: 'report.bin' })
    expect((await a.slots())[0]).toEqual(before)
    await a.slotAction(0, 'restore', { filename: 'report.bin' })
    const restored = (await a.slots())[0]
    expect(restored).toMatchObject({ n_tokens: 115, session: null })
    expect(restored?.id_task).toBeGreaterThan(before?.id_task ?? Number.POSITIVE_INFINITY)
    await a.complete('no session', { id_slot: 0 })
    expect((await a.slots())[0]).toMatchObject({ session: null })
  })

  test('an erased slot holds nothing', async () => {
    await a.complete(textOf(100, 4), { id_slot: 0 }, { 'x-session-id': 'ctx_one' })
    expect(await a.slotAction(0, 'erase')).toEqual({ status: 200, body: { id_slot: 0, n_erased: 115 } })
    expect((await a.slots())[0]).toMatchObject({ n_tokens: 0, session: null })
    expect((await a.complete(textOf(100, 4), { id_slot: 0 })).cachedTokens).toBe(0)
  })

  test('an empty slot is saved and restored like any other', async () => {
    await a.slotAction(0, 'erase')
    expect((await a.slotAction(0, 'save', { filename: 'empty.bin' })).body).toMatchObject({ n_saved: 0 })
    expect((await b.slotAction(0, 'restore', { filename: 'empty.bin' })).body).toMatchObject({ n_restored: 0 })
    expect((await b.complete(textOf(50, 5), { id_slot: 0 })).cachedTokens).toBe(0)
  })

  test('salts keep equal prompts apart, in a slot and across a file', async () => {
    const prompt = textOf(200, 6)
    const complete = async (client: typeof a, fields: Record<string, unknown>) =>
      (await client.complete(prompt, { id_slot: 0, ...fields })).cachedTokens
    await a.slotAction(0, 'erase')
    expect(await complete(a, { cache_salt: 'one' })).toBe(0)
    expect(await complete(a, { cache_salt: 'one' })).toBe(199)
    await a.slotAction(0, 'save', { filename: 'salt.bin' })
    expect(await complete(a, { cache_salt: 'two' })).toBe(0)
    expect(await complete(a, {})).toBe(0)
    await b.slotAction(0, 'restore', { filename: 'salt.bin' })
    expect(await complete(b, { cache_salt: 'one' })).toBe(199)
    await b.slotAction(0, 'restore', { filename: 'salt.bin' })
    expect(await complete(b, { cache_salt: 'two' })).toBe(0)
    expect((await readFile(join(kvFolder, 'salt.bin'))).includes('one')).toBe(false)
  })

  test('without a slot given, the one with the longest prefix is taken, else the one unused for longest', async () => {
    await a.complete(textOf(200, 7), { id_slot: 1 })
    await a.complete(textOf(200, 8), { id_slot: 0 })
    expect((await a.complete(textOf(200, 7))).cachedTokens).toBe(199)
    await a.complete(textOf(200, 9))
    expect((await a.complete(textOf(200, 7))).cachedTokens).toBe(199)
  })

  test.each([
    ['a file that is not there', 0, 'restore', { filename: 'nowhere.bin' }, 'Unable to restore slot: no such file'],
    ['a way out of the folder', 0, 'restore', { filename: '../one.bin' }, 'Invalid filename'],
    ['a path', 0, 'save', { filename: 'a/b.bin' }, 'Invalid filename'],
    ['a hidden file', 0, 'save', { filename: '.hidden' }, 'Invalid filename'],
    ['no file name', 0, 'save', {}, 'Invalid filename'],
    ['a file name that is no text', 0, 'save', { filename: 5 }, 'Invalid filename'],
    ['a slot that is not there', 2, 'save', { filename: 'a.bin' }, 'Invalid slot ID'],
    ['a slot that is no number', 'x', 'erase', {}, 'Invalid slot ID'],
    ['an action that is not known', 0, 'swap', {}, 'Invalid action'],
  ])('%s is refused', async (_, slot, action, body, message) => {
    expect(await a.slotAction(slot, action, body)).toEqual({
      status: 400,
      body: { error: { code: 400, message, type: 'invalid_request_error' } },
    })
  })

  test('a file with one flipped bit is never used, wherever it is flipped', async () => {
    await a.complete(textOf(100, 10), { id_slot: 0 })
    await a.slotAction(0, 'save', { filename: 'whole.bin' })
    const whole = await readFile(join(kvFolder, 'whole.bin'))
    await b.complete(textOf(100, 11), { id_slot: 0 })
    const positions = [0, 5, 40, Math.floor(whole.length / 2), whole.length - 100, whole.length - 1]
    for (const position of positions) {
      const damaged = Buffer.from(whole)
      damaged.writeUInt8(damaged.readUInt8(position) ^ 4, position)
      await writeFile(join(kvFolder, 'damaged.bin'), damaged)
      const answer = await b.slotAction(0, 'restore', { filename: 'damaged.bin' })
      expect(answer).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringMatching(/^Unable to restore slot: /) } },
      })
    }
    await writeFile(join(kvFolder, 'damaged.bin'), whole.subarray(0, -1))
    expect(await b.slotAction(0, 'restore', { filename: 'damaged.bin' })).toMatchObject({ status: 400 })
    expect((await b.complete(textOf(100, 11), { id_slot: 0 })).cachedTokens).toBe(99)
  })

  test('a file of another model is refused', async () => {
    const shape = { ...defaultRandomModel, layers: 1, feedForwardSize: 256, seed: 99 }
    const { path } = await ensureRandomModel(join(root, 'models'), shape)
    const args = ['--model', path, '--model-name', 'tiny-random', '--slots', '1', '--context-tokens', '512']
    const other = await processes.start([...args, '--kv-dir', kvFolder, '--log-level', 'warn'])
    const client = createEngineClient(other.url)
    await a.complete(textOf(50, 12), { id_slot: 0 })
    await a.slotAction(0, 'save', { filename: 'foreign.bin' })
    expect(await client.slotAction(0, 'restore', { filename: 'foreign.bin' })).toMatchObject({
      status: 400,
      body: { error: { message: 'Unable to restore slot: the file is of another model' } },
    })
    expect((await client.complete(textOf(50, 12))).text).toHaveLength(16)
    await other.stop()
  })

  test('an action on a busy slot waits its turn, and is dropped when its client leaves', async () => {
    await a.complete(textOf(100, 13), { id_slot: 0 })
    const longAnswer = a.complete(textOf(100, 13), { id_slot: 0, max_tokens: 800 })
    await a.slotsUntil((slots) => slots[0]?.is_processing === true)
    const leaving = new AbortController()
    const dropped = a.post('/slots/0?action=erase', {}, { signal: leaving.signal })
    const deferred = a.slotAction(0, 'save', { filename: 'deferred.bin' })
    await untilWaiting(a, 2)
    leaving.abort()
    await expect(dropped).rejects.toThrow()
    await untilWaiting(a, 1)
    expect((await longAnswer).completionTokens).toBe(800)
    expect((await deferred).body).toMatchObject({ n_saved: 899 })
    expect((await a.slots())[0]).toMatchObject({ n_tokens: 899 })
  })

  test('a slot is saved while another computes', async () => {
    await a.complete(textOf(50, 14), { id_slot: 0 })
    const leaving = new AbortController()
    const body = { model: 'tiny-random', prompt: textOf(50, 15), max_tokens: 4000, id_slot: 1 }
    const busy = a.post('/v1/completions', body, { signal: leaving.signal })
    await a.slotsUntil((slots) => slots[1]?.is_processing === true)
    expect((await a.slotAction(0, 'save', { filename: 'beside.bin' })).status).toBe(200)
    expect((await a.slots())[1]).toMatchObject({ is_processing: true })
    leaving.abort()
    await expect(busy).rejects.toThrow()
  })

  test('slots compute together, each its own answer', async () => {
    const seeds = [16, 17]
    const together = await Promise.all(seeds.map((seed, slot) => a.complete(textOf(80, seed), { id_slot: slot })))
    for (const [slot, { text, cachedTokens }] of together.entries()) {
      expect(cachedTokens).toBe(0)
      const next = await a.complete(`${textOf(80, seeds[slot] ?? 0)}${text}!`, { id_slot: slot })
      // The last of the 16 tokens was chosen, but not computed.
      expect(next.cachedTokens).toBe(80 + 15)
    }
  })
})

/** Waits until that many tasks wait for a slot. */
async function untilWaiting(client: ReturnType<typeof createEngineClient>, count: number): Promise<void> {
  for (;;) {
    const metrics = await client.getText('/metrics')
    if (metrics.includes(`vllm:num_requests_waiting{model_name="tiny-random"} ${count}\n`)) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
