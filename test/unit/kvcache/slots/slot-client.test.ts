import { afterEach, describe, expect, test } from '@jest/globals'
import * as z from 'zod'
import { createSlotClient, type SlotClient, slotsAnswer } from '../../../../src/kvcache/slots/slot-client.ts'
import { type Answer, json, type ScriptedEngine, startScriptedEngine } from '../scripted-engine.ts'

let engine: ScriptedEngine
let client: SlotClient
const start = async (answer: Answer, times: { callTimeoutMs?: number; lateTimeoutMs?: number } = {}): Promise<void> => {
  engine = await startScriptedEngine(answer)
  client = createSlotClient({ callTimeoutMs: 5_000, lateTimeoutMs: 5_000, ...times })
}
afterEach(async () => {
  await client.close()
  await engine.close()
})

const never = new AbortController().signal
const saved = { id_slot: 1, filename: 'x.kv', n_saved: 3, n_written: 4 }
const slotsOf = (signal: AbortSignal) => client.ask({ pod: engine.pod, path: '/slots' }, slotsAnswer, signal)
const address = () => ({ pod: engine.pod, slot: 1 })

describe('requests', () => {
  test('resolve to what the engine answers', async () => {
    await start(json([{ id: 0, is_processing: false }]))
    expect(await slotsOf(never)).toMatchObject([{ id: 0, busy: false }])
    expect(engine.requests).toEqual(['GET /slots'])
  })

  test.each<[string, Answer, string]>([
    ['an error', json({ error: {} }, 503), 'status 503'],
    ['another shape', json({ slots: [] }), 'expected array'],
    ['no JSON', (_request, response) => response.end('the secret prompt'), 'expected array'],
    ['too much', (_request, response) => response.end(`["${'x'.repeat(5_000_000)}"]`), 'more than'],
    ['half of it', (_request, response) => response.write('[', () => response.destroy()), 'other side closed'],
  ])('reject on %s, without quoting it', async (_name, answer, message) => {
    await start(answer)
    const fault = slotsOf(never)
    await expect(fault).rejects.toThrow(message)
    await expect(fault).rejects.not.toThrow('secret')
  })

  test.each([
    { schema: z.object({}).default({}), expected: {} },
    { schema: z.object({}).optional(), expected: undefined },
  ])('resolve to $expected, the schema’s default, without such a path', async ({ schema, expected }) => {
    await start(json({ error: {} }, 404))
    expect(await client.ask({ pod: engine.pod, path: '/props' }, schema, never)).toEqual(expected)
  })

  test('reject after the timeout or an abort', async () => {
    await start(() => {}, { callTimeoutMs: 20 })
    await expect(slotsOf(never)).rejects.toThrow('no answer within 20 ms')
    await expect(slotsOf(AbortSignal.abort())).rejects.toThrow('aborted')
  })
})

describe('actions', () => {
  test('name the slot and the file', async () => {
    await start(json(saved))
    expect(await client.save(address(), 'x.kv')).toEqual({ kind: 'done', value: { slot: 1, tokens: 3, bytes: 4 } })
    expect(engine.requests).toEqual(['POST /slots/1?action=save'])
  })

  test.each<[string, Answer, object]>([
    ['an error is a refusal', json({ error: {} }, 400), { kind: 'refused', status: 400 }],
    ['another shape leaves it unknown', json({}), { kind: 'unknown' }],
    ['a broken connection leaves it unknown', (request) => request.destroy(), { kind: 'unknown' }],
  ])('%s', async (_name, answer, expected) => {
    await start(answer)
    expect(await client.restore(address(), 'x.kv')).toMatchObject(expected)
  })

  test('are unsent when the connection is refused', async () => {
    await start(json({}))
    await engine.close()
    const outcome = await client.erase(address())
    engine = await startScriptedEngine(json({}))
    expect(outcome).toMatchObject({ kind: 'unsent' })
  })

  test.each([
    { name: 'when no answer ever comes', lateTimeoutMs: 40, isClosed: false },
    { name: 'when the client is closed', lateTimeoutMs: 5_000, isClosed: true },
  ])('end unknown $name', async ({ lateTimeoutMs, isClosed }) => {
    await start(() => {}, { lateTimeoutMs })
    const ending = client.save(address(), 'x.kv')
    if (isClosed) await client.close()
    expect(await ending).toMatchObject({ kind: 'unknown' })
  })
})
