import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvLog } from '../../../../src/kvcache/connector-definition.ts'
import type { KvArtefact, KvPresence } from '../../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  removeSession,
  serveTurn,
  storedBy,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheFleet, startLmcacheFleet } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'
import { tokenize } from '../../../support/simulated-fleet/tokenizer.ts'

const paths = ['/instances', '/directory/lookup', '/status', '/v1/models', '/version', '/metrics']
const kindOf = (presence: KvPresence): string => (presence.kind === 'hit' ? 'hit' : presence.reason)

const texts = [
  '<html>',
  'null',
  '{}',
  '{"data":7,"version":{},"instances":[{}],"chunks":-1,"results":0,"status":"?"}',
  '{"chunks":5,"results":[]}',
]

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
    const { stored } = await serveTurn(bed.connect(), { session, pod: bed.pods[0], prompt })
    const cache = bed.connect({ settleMs: 20, log })
    bed.fleet.onCall((call) => (call.path.startsWith(path) ? { nonsense: text } : undefined))
    const { prepared, finished } = await serveTurn(cache, { session, pod: bed.pods[1], prompt, stored })
    const created = await serveTurn(cache, { session: newSession(), pod: bed.pods[0], prompt: newPrompt() })
    bed.fleet.onCall(() => undefined)

    expect(['hit', 'kv_missing', 'load_failed', 'kv_incompatible']).toContain(kindOf(prepared.presence))
    expect(prepared.fields).toMatchObject({ cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/) })
    expect(['unchanged', 'none', 'stored']).toContain(finished.kind)
    expect(finished).not.toMatchObject({ tokens: Number.NaN })
    expect(['nothing_stored', 'load_failed']).toContain(kindOf(created.prepared.presence))
  })

  test.each(['/instances', '/directory/lookup', '/cache/objects'])(
    'a removal is busy while %s is invalid, and succeeds afterwards',
    async (path) => {
      const cache = bed.connect()
      const { stored } = await serveTurn(cache, { session, pod: bed.pods[0], prompt })
      for (const text of texts) {
        bed.fleet.onCall((call) => (call.path.startsWith(path) ? { nonsense: text } : undefined))
        expect(await removeSession(cache, session, stored)).toMatchObject({ kind: 'busy' })
      }
      bed.fleet.onCall(() => undefined)
      await eventually(async () => (await removeSession(cache, session, stored)).kind === 'removed')
      expect(await bed.pods[0].probe(prompt)).toBe(0)
    },
  )

  test('logs contain no prompt, token ids, salt or key', async () => {
    const cache = bed.connect({ settleMs: 300, log })
    const secrets = new Set<string>([prompt.slice(0, 12), prompt.slice(-12), tokenize(prompt).slice(0, 4).join()])
    const artefacts: KvArtefact[] = []
    for (const path of ['/none', ...paths, '/cache/objects']) {
      for (const fault of ['fail', 'cut', { nonsense: `${prompt} ${tokenize(prompt).join()}` }] as const) {
        bed.fleet.onCall((call) => (call.path.startsWith(path) ? fault : undefined))
        const turn = turnOf(session, bed.pods[0], { stored: artefacts.at(-1) })
        const { fields, claim, presence } = await cache.prepare(turn, { signal: anySignal() })
        const usage = await bed.pods[0].run({ prompt, fields })
        const finished = await finishTurn(cache, turn, { claim, usage })
        const stored = storedBy(finished)
        if (stored !== undefined) artefacts.push(stored)
        const removed = await removeSession(cache, session, stored)
        // The caller logs these.
        note('outcome', [presence, finished.kind === 'none' ? finished : finished.kind, removed])
        secrets.add(fields['cache_salt'] as string)
      }
    }
    bed.fleet.onCall(() => undefined)
    expect(artefacts.length).toBeGreaterThan(0)
    expect(logged.length).toBeGreaterThan(paths.length)
    const told = [...secrets].filter((secret) => logged.some((line) => line.includes(secret)))
    expect(told).toEqual([])
  })
})
