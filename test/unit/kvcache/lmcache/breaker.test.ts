import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { StoredKv } from '../../../../src/sessions/session-record.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import type { KvConnector, KvPresence } from '../../../contract/kvcache/old-kv-port.ts'
import { eventually } from '../../../support/eventually.ts'
import type { SimFault } from '../../../support/simulated-fleet/sim-server.ts'

describe('a store of KV that does not answer', () => {
  let bed: LmcacheBed
  let connector: KvConnector
  let session: TestSession
  let kv: StoredKv | undefined
  const prompt = newPrompt()
  beforeEach(async () => {
    bed = await startLmcacheBed({ events: false })
    connector = bed.connect()
    session = newSession()
    kv = (await serveTurn(connector, { session, pod: bed.pods[0], prompt })).kv
  })
  afterEach(() => bed.close())

  const attach = async (): Promise<KvPresence> =>
    (await connector.attach(turnOf(session, bed.pods[1]), kv, { signal: anySignal() })).presence
  const failWith = (fault: SimFault): void =>
    bed.fleet.onCall(({ server }) => (server === 'coordinator' ? fault : undefined))
  /** Calls of turns: probes of whether it is back do not count. */
  const storeCalls = (): number =>
    bed.fleet.calls.filter(({ server, path }) => !server.startsWith('engine') && path !== '/healthz').length

  test.each<SimFault>(['fail', 'cut', 'freeze', { nonsense: '<html>' }])(
    'receives no calls of turns after three failures: %j',
    async (fault) => {
      failWith(fault)
      const failures = [(await attach()).kind, (await attach()).kind, (await attach()).kind]
      expect(failures).toEqual(['failed', 'failed', 'failed'])
      const before = storeCalls()
      const { attached, offloaded } = await serveTurn(connector, { session, pod: bed.pods[1], prompt, kv })
      expect(attached.presence).toMatchObject({ kind: 'unavailable', cause: { name: 'StoreUnavailableFault' } })
      expect(offloaded).toMatchObject({ kind: 'none', reason: 'kv_store_unavailable' })
      expect(storeCalls()).toBe(before)
    },
  )

  test('receives calls again once it answers', async () => {
    failWith('fail')
    await eventually(async () => (await attach()).kind === 'unavailable')
    bed.fleet.onCall(() => undefined)
    await eventually(async () => (await attach()).kind === 'on-demand')
  })

  test('receives calls after two failures', async () => {
    failWith('fail')
    await attach()
    await attach()
    bed.fleet.onCall(() => undefined)
    expect((await attach()).kind).toBe('on-demand')
    failWith('fail')
    expect([(await attach()).kind, (await attach()).kind]).toEqual(['failed', 'failed'])
    bed.fleet.onCall(() => undefined)
    expect((await attach()).kind).toBe('on-demand')
  })
})
