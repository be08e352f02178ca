import { afterEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  serveTurn,
  storedBy,
  type TestPod,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheBedOptions, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'

describe('isolation', () => {
  let bed: LmcacheBed
  let cache: KvCache
  const prompt = newPrompt()
  const incompatible = { kind: 'miss', reason: 'kv_incompatible' }
  const start = async (options: LmcacheBedOptions): Promise<void> => {
    bed = await startLmcacheBed(options)
    cache = bed.connect()
  }
  afterEach(() => bed.close())

  const serve = (session: TestSession, pod: TestPod, stored?: KvArtefact, text = prompt) =>
    serveTurn(cache, { session, pod, prompt: text, stored })

  test('an engine of another version loads nothing of the others, whose KV stays', async () => {
    await start({ isolation: 'tenant', versions: ['0.32.0', '0.33.0'] })
    const session = newSession()
    const { stored } = await serve(session, bed.pods[0])
    const other = await serve(session, bed.pods[1], stored)
    expect([other.prepared.presence, other.usage.cachedTokens]).toEqual([incompatible, 0])
    expect((await serve(session, bed.pods[0], stored)).prepared.presence).toMatchObject({ kind: 'hit', tier: 'gpu' })
  })

  test('a session that starts anew reuses no KV of its earlier life, and keeps to its new one', async () => {
    await start({ isolation: 'session' })
    const session = newSession()
    const earlier = await serve(session, bed.pods[0])
    const turn = turnOf(session, bed.pods[0], { restarted: true })
    const { fields, claim, presence } = await cache.prepare(turn, { signal: anySignal() })
    const usage = await bed.pods[0].run({ prompt, fields })
    expect([presence, usage.cachedTokens]).toEqual([{ kind: 'miss', reason: 'nothing_stored' }, 0])
    const stored = storedBy(await finishTurn(cache, turn, { claim, usage }))
    const later = await serve(session, bed.pods[0], stored)
    expect(later.prepared.fields['cache_salt']).toBe(fields['cache_salt'])
    expect(later.prepared.fields['cache_salt']).not.toBe(earlier.prepared.fields['cache_salt'])
  })

  test('a turn whose engine does not say what it is shares KV with its own session alone', async () => {
    await start({ isolation: 'tenant' })
    bed.fleet.onCall(({ path }) => (path === '/version' ? 'fail' : undefined))
    const [one, other] = [newSession('same'), newSession('same')]
    const salts: unknown[] = []
    for (const session of [one, one, other]) {
      const { presence, fields } = await cache.prepare(turnOf(session, bed.pods[0]), { signal: anySignal() })
      expect(presence).toMatchObject({ kind: 'miss', reason: 'load_failed' })
      salts.push(fields['cache_salt'])
    }
    expect([salts[0] === salts[1], salts[0] === salts[2]]).toEqual([true, false])
    expect(salts).not.toContain(cache.isolation(one.tenant)['cache_salt'])
  })

  test('a payload with the salt of another session is incompatible', async () => {
    await start({ isolation: 'session' })
    const { stored } = await serve(newSession(), bed.pods[0])
    const thief = await serve(newSession(), bed.pods[0], stored)
    expect([thief.prepared.presence, thief.usage.cachedTokens]).toEqual([incompatible, 0])
  })
})
