import { afterEach, describe, expect, test } from '@jest/globals'
import type { StoredKv } from '../../../../src/sessions/session-record.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  storedKv,
  type TestPod,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheBedOptions, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import type { KvConnector } from '../../../contract/kvcache/old-kv-port.ts'

describe('isolation', () => {
  let bed: LmcacheBed
  let connector: KvConnector
  const prompt = newPrompt()
  const start = async (options: LmcacheBedOptions): Promise<void> => {
    bed = await startLmcacheBed(options)
    connector = bed.connect()
  }
  afterEach(() => bed.close())

  const serve = (session: TestSession, pod: TestPod, kv?: StoredKv, text = prompt) =>
    serveTurn(connector, { session, pod, prompt: text, kv })
  const remove = (session: TestSession, kv: StoredKv | undefined) =>
    connector.remove({ kind: 'session', session: session.key, payload: kv?.payload }, anySignal())

  test('chunks that sessions of a tenant share stay until the last session is removed', async () => {
    await start({ isolation: 'tenant' })
    const [first, second] = [newSession(), newSession()]
    const own = await serve(first, bed.pods[0], undefined, `${prompt}${' I ask one thing.'.repeat(8)}`)
    const other = await serve(second, bed.pods[1], undefined, `${prompt}${' I ask another thing.'.repeat(8)}`)
    expect(other.usage.cachedTokens).toBeGreaterThanOrEqual(Math.floor(prompt.length / 64) * 64)
    const both = bed.fleet.chunks().length

    expect(await remove(first, own.kv)).toEqual({ kind: 'removed' })
    const left = bed.fleet.chunks().length
    expect(left).toBeLessThan(both)
    expect(left).toBe((other.kv?.tokens ?? 0) / 64)
    const again = await connector.attach(turnOf(second, bed.pods[0]), other.kv, { signal: anySignal() })
    expect(again.presence).toMatchObject({ tokens: other.kv?.tokens })

    expect(await remove(second, other.kv)).toEqual({ kind: 'removed' })
    expect(bed.fleet.chunks()).toEqual([])
  })

  test('an engine of another version loads nothing of the others, whose KV stays', async () => {
    await start({ isolation: 'tenant', versions: ['0.32.0', '0.33.0'] })
    const session = newSession()
    const { kv } = await serve(session, bed.pods[0])
    const other = await serve(session, bed.pods[1], kv)
    expect([other.attached.presence, other.usage.cachedTokens]).toEqual([{ kind: 'incompatible' }, 0])
    expect((await serve(session, bed.pods[0], kv)).attached.presence).toMatchObject({ kind: 'resident' })
  })

  test('a session that starts anew reuses no KV of its earlier life, and keeps to its new one', async () => {
    await start({ isolation: 'session' })
    const session = newSession()
    const earlier = await serve(session, bed.pods[0])
    const turn = { ...turnOf(session, bed.pods[0]), startsAnew: true }
    const { fields, claim, presence } = await connector.attach(turn, undefined, { signal: anySignal() })
    const usage = await bed.pods[0].run({ prompt, fields })
    expect([presence, usage.cachedTokens]).toEqual([{ kind: 'empty' }, 0])
    const { promptTokens } = usage
    const totalTokens = promptTokens + usage.outputTokens
    const announce = async (): Promise<void> => {}
    const kv = storedKv(
      await connector.offload({ turn, claim, totalTokens, promptTokens, announce, signal: anySignal() }),
    )
    const later = await serve(session, bed.pods[0], kv)
    expect(later.attached.fields['cache_salt']).toBe(fields['cache_salt'])
    expect(later.attached.fields['cache_salt']).not.toBe(earlier.attached.fields['cache_salt'])
  })

  test('a payload with the salt of another session is incompatible', async () => {
    await start({ isolation: 'session' })
    const { kv } = await serve(newSession(), bed.pods[0])
    const thief = await serve(newSession(), bed.pods[0], kv)
    expect([thief.attached.presence, thief.usage.cachedTokens]).toEqual([{ kind: 'incompatible' }, 0])
  })

  test.each(['tenant', 'session'] as const)('a claim names no salt, isolation by %s', async (isolation) => {
    await start({ isolation })
    const { attached } = await serve(newSession(), bed.pods[0])
    expect(attached.claim).not.toContain(attached.fields['cache_salt'] as string)
  })

  test.each(['tenant', 'session'] as const)(
    'a turn without a session reuses no KV of a session, isolation by %s',
    async (isolation) => {
      await start({ isolation })
      const session = newSession()
      const { attached } = await serve(session, bed.pods[0])
      const fields = connector.fieldsWithoutSession(session.tenant)
      expect((await bed.pods[0].run({ prompt, fields })).cachedTokens).toBe(0)
      expect(fields['cache_salt']).not.toBe(attached.fields['cache_salt'])
    },
  )
})
