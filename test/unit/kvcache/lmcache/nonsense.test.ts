import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
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
import { type LmcacheBed, type LmcacheFleet, startLmcacheFleet } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'
import { tokenize } from '../../../support/simulated-fleet/tokenizer.ts'

const paths = [
  '/instances',
  '/directory/lookup',
  '/cache/pins',
  '/quota',
  '/status',
  '/v1/models',
  '/version',
  '/metrics',
]
const texts = ['<html>', 'null', '{}', '{"data":7,"version":{},"instances":[{}],"chunks":-1,"results":0,"status":"?"}']

describe('invalid responses of engines and store', () => {
  let fleet: LmcacheFleet
  let bed: LmcacheBed
  let session: TestSession
  let prompt: string
  const logged: string[] = []
  const note = (message: string, fields: unknown): void => void logged.push(inspect([message, fields], { depth: 20 }))
  const log: KvLog = { debug: note, info: note, warn: note }
  beforeAll(async () => {
    fleet = await startLmcacheFleet()
    bed = await fleet.bed()
  })
  beforeEach(() => {
    session = newSession()
    prompt = newPrompt()
    logged.length = 0
  })
  afterAll(async () => {
    await bed.close()
    await fleet.close()
  })

  const rows = paths.flatMap((path) => texts.map((text) => ({ path, text })))
  test.each(rows)('$path answered with «$text»: the turn runs without its KV', async ({ path, text }) => {
    const { kv } = await serveTurn(bed.connect(), { session, pod: bed.pods[0], prompt })
    const connector = bed.connect({ settleMs: 20, log })
    bed.fleet.onCall((call) => (call.path.startsWith(path) ? { nonsense: text } : undefined))
    const { attached, offloaded } = await serveTurn(connector, { session, pod: bed.pods[1], prompt, kv })
    const created = await serveTurn(connector, { session: newSession(), pod: bed.pods[0], prompt: newPrompt() })
    bed.fleet.onCall(() => undefined)

    expect(['resident', 'on-demand', 'missing', 'failed', 'incompatible']).toContain(attached.presence.kind)
    expect(attached.fields).toMatchObject({ cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/) })
    expect(['unchanged', 'none', 'stored']).toContain(offloaded.kind)
    expect(['empty', 'failed']).toContain(created.attached.presence.kind)
  })

  test.each(['/instances', '/directory/lookup', '/cache/objects'])(
    'a removal is busy while %s is invalid, and succeeds afterwards',
    async (path) => {
      const connector = bed.connect()
      const { kv } = await serveTurn(connector, { session, pod: bed.pods[0], prompt })
      const removal = { kind: 'session', session: session.key, payload: kv?.payload } as const
      for (const text of texts) {
        bed.fleet.onCall((call) => (call.path.startsWith(path) ? { nonsense: text } : undefined))
        expect(await connector.remove(removal, anySignal())).toMatchObject({ kind: 'busy' })
      }
      bed.fleet.onCall(() => undefined)
      await eventually(async () => (await connector.remove(removal, anySignal())).kind === 'removed')
      expect(await bed.pods[0].probe(prompt)).toBe(0)
    },
  )

  test('logs contain no prompt, token ids, salt or key', async () => {
    const connector = bed.connect({ settleMs: 300, log })
    const secrets = new Set<string>([prompt.slice(0, 12), prompt.slice(-12), tokenize(prompt).slice(0, 4).join()])
    const kvs = []
    for (const path of ['/none', ...paths, '/cache/objects', '/quota']) {
      for (const fault of ['fail', 'cut', { nonsense: `${prompt} ${tokenize(prompt).join()}` }] as const) {
        bed.fleet.onCall((call) => (call.path.startsWith(path) ? fault : undefined))
        const turn = turnOf(session, bed.pods[0])
        const { fields, claim, presence } = await connector.attach(turn, kvs.at(-1), { signal: anySignal() })
        const { promptTokens } = await bed.pods[0].run({ prompt, fields })
        const request = { turn, claim, totalTokens: promptTokens + 4, promptTokens, signal: anySignal() }
        const offloaded = await connector.offload({ ...request, announce: async () => {} })
        const kv = storedKv(offloaded)
        if (kv !== undefined) kvs.push(kv)
        const payload = kv?.payload
        const removed = await connector.remove({ kind: 'session', session: session.key, payload }, anySignal())
        // The caller logs these.
        note('outcome', [presence, offloaded.kind === 'none' ? offloaded : offloaded.kind, removed])
        secrets.add(fields['cache_salt'] as string)
      }
    }
    bed.fleet.onCall(() => undefined)
    expect(kvs.length).toBeGreaterThan(0)
    expect(logged.length).toBeGreaterThan(paths.length)
    const told = [...secrets].filter((secret) => logged.some((line) => line.includes(secret)))
    expect(told).toEqual([])
  })
})
