import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  removeSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'

// The contract leaves to each connector what of a turn is stored, and where it says that it lies.
describe.each([{ events: true }, { events: false }])('events: $events', ({ events }) => {
  let bed: LmcacheBed
  let cache: KvCache
  let session: TestSession
  const prompt = newPrompt()
  beforeEach(async () => {
    bed = await startLmcacheBed({ events })
    cache = bed.connect()
    session = newSession()
  })
  afterEach(() => bed.close())

  const serve = (text = prompt, stored?: KvArtefact) =>
    serveTurn(cache, { session, pod: bed.pods[0], prompt: text, stored })

  test('whole chunks of the prompt are stored', async () => {
    const { stored, usage } = await serve()
    expect(stored?.tokens).toBe(Math.floor(usage.promptTokens / bed.fleet.chunkTokens) * bed.fleet.chunkTokens)
  })

  test('a conversation shorter than a chunk is not stored', async () => {
    expect((await serve('Hi')).finished).toEqual({ kind: 'none', reason: 'too_short' })
    expect(await bed.artefacts()).toEqual([])
  })

  test(`a longer turn leaves ${events ? 'a new artefact' : 'the artefact, which stands for all of the session'}`, async () => {
    const { stored } = await serve()
    const { finished } = await serve(`${prompt}${bed.more}`, stored)
    expect(finished.kind).toBe(events ? 'stored' : 'unchanged')
  })

  test(`20 concurrent turns find the KV in the ${events ? 'engine' : 'store'}`, async () => {
    const { stored } = await serve()
    const turns = Array.from({ length: 20 }, () => turnOf(session, bed.pods[0], { stored }))
    const prepared = await Promise.all(turns.map((turn) => cache.prepare(turn, { signal: anySignal() })))
    const hit = { kind: 'hit', tier: events ? 'gpu' : 'store', tokens: stored?.tokens }
    expect(prepared.map(({ presence }) => presence)).toEqual(turns.map(() => hit))
  })

  test('a turn that another pod served is stored from there', async () => {
    const turn = turnOf(session, bed.pods[0])
    const { fields, claim } = await cache.prepare(turn, { signal: anySignal() })
    const usage = await bed.pods[1].run({ prompt, fields })
    const finished = await finishTurn(cache, { ...turn, pod: bed.pods[1].address }, { claim, usage })
    expect(finished.kind).toBe('stored')
  })

  test('a removal does not wait for a running turn', async () => {
    const { stored } = await serve()
    await cache.prepare(turnOf(session, bed.pods[0], { stored }), { signal: anySignal() })
    expect(await removeSession(cache, session, stored)).toEqual({ kind: 'removed' })
  })
})
