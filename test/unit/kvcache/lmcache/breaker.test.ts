import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import type { KvArtefact, KvPresence } from '../../../../src/kvcache/kv-connector.ts'
import { createWarnings } from '../../../../src/telemetry/warnings.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'
import type { SimFault } from '../../../support/simulated-fleet/sim-server.ts'

describe('a store of KV that does not answer', () => {
  let bed: LmcacheBed
  let cache: KvCache
  let session: TestSession
  let stored: KvArtefact | undefined
  const prompt = newPrompt()
  beforeEach(async () => {
    bed = await startLmcacheBed({ events: false })
    cache = bed.connect()
    session = newSession()
    stored = (await serveTurn(cache, { session, pod: bed.pods[0], prompt })).stored
  })
  afterEach(() => bed.close())

  const presence = async (): Promise<KvPresence> =>
    (await cache.prepare(turnOf(session, bed.pods[1], { stored }), { signal: anySignal() })).presence
  /** Why the turn is a miss; undefined: it is a hit. */
  const missed = async (): Promise<string | undefined> => {
    const found = await presence()
    return found.kind === 'miss' ? found.reason : undefined
  }
  const failWith = (fault: SimFault): void =>
    bed.fleet.onCall(({ server }) => (server === 'coordinator' ? fault : undefined))
  /** Calls of turns: probes of whether it is back do not count. */
  const storeCalls = (): number =>
    bed.fleet.calls.filter(({ server, path }) => !server.startsWith('engine') && path !== '/healthz').length

  test.each<SimFault>(['fail', 'cut', 'freeze', { nonsense: '<html>' }])(
    'receives no calls of turns after three failures: %j',
    async (fault) => {
      failWith(fault)
      const failures = [await missed(), await missed(), await missed()]
      expect(failures).toEqual(['load_failed', 'load_failed', 'load_failed'])
      const before = storeCalls()
      const { prepared, finished } = await serveTurn(cache, { session, pod: bed.pods[1], prompt, stored })
      const cause = { name: 'StoreUnavailableFault' }
      expect(prepared.presence).toMatchObject({ kind: 'miss', reason: 'kv_store_unavailable', cause })
      expect(finished).toMatchObject({ kind: 'none', reason: 'kv_store_unavailable' })
      expect(storeCalls()).toBe(before)
    },
  )

  test('receives calls again once it answers; meanwhile it is one warning, with its address and the cause', async () => {
    const lines: string[] = []
    const write = (text: string) => void lines.push(text)
    cache = bed.connect({ warnings: createWarnings({ warn: write, info: write }) })
    failWith('fail')
    await eventually(async () => (await missed()) === 'kv_store_unavailable')
    for (let turn = 0; turn < 5; turn += 1) await missed()
    bed.fleet.onCall(() => undefined)
    await eventually(async () => (await presence()).kind === 'hit')
    const subject = `The KV store ${bed.fleet.coordinator.server.address} is`
    expect(lines).toEqual([expect.stringMatching(`^${subject} unavailable: .*500`), `${subject} available again`])
  })

  test('receives calls after two failures', async () => {
    failWith('fail')
    await presence()
    await presence()
    bed.fleet.onCall(() => undefined)
    expect((await presence()).kind).toBe('hit')
    failWith('fail')
    expect([await missed(), await missed()]).toEqual(['load_failed', 'load_failed'])
    bed.fleet.onCall(() => undefined)
    expect((await presence()).kind).toBe('hit')
  })
})
