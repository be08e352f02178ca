import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvConnector, KvOpening } from '../../../../src/kvcache/kv-connector.ts'
import type { KvLog } from '../../../../src/kvcache/kv-log.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  storedKv,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { startWarmupBed, type WarmupBed } from '../../../contract/kvcache/warmup-bed.ts'
import { eventually } from '../../../support/eventually.ts'
import { chatText, tokenize } from '../../../support/simulated-fleet/tokenizer.ts'

describe('warmup', () => {
  let bed: WarmupBed
  let connector: KvConnector
  let session: TestSession
  let prompt: string
  beforeEach(async () => {
    bed = await startWarmupBed({ isolation: 'session' })
    connector = bed.connect()
    session = newSession()
    prompt = newPrompt()
  })
  afterEach(() => bed.close())

  const serve = (pod: number, kv?: Parameters<KvConnector['attach']>[1]) =>
    serveTurn(connector, { session, pod: bed.pods[pod] ?? bed.pods[0], prompt, kv })
  const second = () => turnOf(session, bed.pods[1])

  const openings: readonly (readonly [KvOpening['form'], object, string])[] = [
    ['completions', { prompt: 'Once upon a time'.repeat(8) }, 'Once upon a time'.repeat(8)],
    [
      'chat',
      { messages: [{ role: 'user', content: 'Once '.repeat(30) }], max_completion_tokens: 500, stream: true, n: 3 },
      chatText([{ role: 'user', content: 'Once '.repeat(30) }]),
    ],
    [
      'responses',
      { input: 'Once '.repeat(30), instructions: 'Be brief.', max_output_tokens: 99, stream: true },
      chatText([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Once '.repeat(30) },
      ]),
    ],
  ]
  test.each(openings)('a %s request is computed for one token on another pod', async (form, body, text) => {
    const request = JSON.stringify({ model: 'tiny', ...body })
    const turn = { ...turnOf(session, bed.pods[0]), opening: { form, body: Buffer.from(request) } }
    const { fields, claim } = await connector.attach(turn, undefined, { signal: anySignal() })
    await eventually(() => bed.vault.names().length > 0)
    const promptTokens = tokenize(text).length
    const totalTokens = promptTokens + 4
    const announce = async (): Promise<void> => {}
    const signal = anySignal()
    const kv = storedKv(await connector.offload({ turn, claim, totalTokens, promptTokens, announce, signal }))
    const { presence } = await connector.attach(second(), kv, { signal: anySignal() })
    expect(presence).toEqual({ kind: 'loaded', tokens: promptTokens, loadMs: expect.any(Number) })
    const resident = bed.fleet.pods[1].engine.resident(String(fields['cache_salt']), tokenize(text))
    expect(promptTokens - resident).toBeLessThan(16)
  })

  test('20 turns at once make one request', async () => {
    const { kv } = await serve(0)
    const found = await Promise.all(
      Array.from({ length: 20 }, () => connector.attach(second(), kv, { signal: anySignal() })),
    )
    expect(new Set(found.map(({ presence }) => presence.kind))).toEqual(new Set(['loaded']))
    expect(bed.pods[1].loads()).toBe(1)
  })

  test('a pod whose restarts are unknown delays a turn by no more than its budget', async () => {
    const { kv } = await serve(0)
    bed.fleet.onCall(({ path }) => (path === '/metrics' ? 'freeze' : undefined))
    const attach = () => connector.attach(turnOf(session, bed.pods[0]), kv, { signal: AbortSignal.timeout(50) })
    // What it told a moment ago counts for a moment more.
    await eventually(async () => (await attach()).presence.kind !== 'resident')
    expect((await attach()).presence).toEqual({ kind: 'timed-out' })
  })

  test.each(['fail', 'cut', 'lose-answer', { nonsense: '<html>' }, { nonsense: '{"usage":1}' }] as const)(
    'a pod that answers a warm-up wrongly fails it: %j',
    async (fault) => {
      const { kv } = await serve(0)
      bed.fleet.onCall(({ path }) => (path === '/v1/completions' ? fault : undefined))
      expect((await connector.attach(second(), kv, { signal: anySignal() })).presence).toMatchObject({ kind: 'failed' })
      bed.fleet.onCall(() => undefined)
      expect((await connector.attach(second(), kv, { signal: anySignal() })).presence).toMatchObject({ kind: 'loaded' })
    },
  )

  test('a session that starts anew reuses no KV of its earlier life', async () => {
    const earlier = await serve(0)
    const { fields } = await connector.attach(
      { ...turnOf(session, bed.pods[0], prompt), startsAnew: true },
      undefined,
      { signal: anySignal() },
    )
    expect((await bed.pods[0].run({ prompt, fields })).cachedTokens).toBe(0)
    expect(fields['cache_salt']).not.toBe(earlier.attached.fields['cache_salt'])
  })

  test('a turn that failed leaves nothing', async () => {
    const turn = turnOf(session, bed.pods[0], prompt)
    const { claim } = await connector.attach(turn, undefined, { signal: anySignal() })
    await eventually(() => bed.vault.names().length > 0)
    await connector.detach(turn, claim, anySignal())
    expect(bed.vault.names()).toEqual([])
  })

  test.each(['', 'no claim', '{}', '[1]', 'null'])('a claim that is not its own is ignored: «%s»', async (claim) => {
    const turn = turnOf(session, bed.pods[0])
    const request = { turn, claim, totalTokens: 9, announce: async () => {}, signal: anySignal() }
    expect(await connector.offload(request)).toEqual({ kind: 'none', reason: 'not_attached' })
    await expect(connector.detach(turn, claim, anySignal())).resolves.toBeUndefined()
  })

  test('logs and causes contain no prompt, salt or key', async () => {
    const logged: string[] = []
    const note = (...parts: readonly unknown[]): void => void logged.push(inspect(parts, { depth: 20 }))
    const log: KvLog = { debug: note, info: note, warn: note }
    const { kv, attached } = await serve(0)
    connector = bed.connect({ log })
    bed.fleet.onCall(({ path }) => (path === '/v1/completions' ? { nonsense: prompt } : undefined))
    note((await connector.attach(second(), kv, { signal: anySignal() })).presence)
    const secrets = [prompt.slice(0, 12), String(attached.fields['cache_salt']), String(second().contentKey)]
    expect(logged.join('\n')).toContain('failed')
    expect(secrets.filter((secret) => logged.some((line) => line.includes(secret)))).toEqual([])
  })
})
