import { beforeEach, describe, expect, test } from '@jest/globals'
import type { KvArtefact, KvPresence } from '../../../../src/kvcache/kv-connector.ts'
import { createWarnings } from '../../../../src/telemetry/warnings.ts'
import { startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { useKvBed } from '../../../contract/kvcache/use-kv-bed.ts'
import { eventually } from '../../../support/eventually.ts'
import type { SimFault } from '../../../support/simulated-fleet/sim-server.ts'

describe('a store of KV that does not answer', () => {
  const kit = useKvBed(() => startLmcacheBed())
  let stored: KvArtefact
  beforeEach(async () => {
    stored = await kit.begin()
  })

  const presence = async (): Promise<KvPresence> => (await kit.prepare(kit.second, stored)).presence
  /** Why the turn is a miss; undefined: it is a hit. */
  const missed = async (): Promise<string | undefined> => {
    const found = await presence()
    return found.kind === 'miss' ? found.reason : undefined
  }
  const failWith = (fault: SimFault): void =>
    kit.bed.fleet.onCall(({ server }) => (server === 'coordinator' ? fault : undefined))
  /** Calls of turns: probes of whether it is back do not count. */
  const storeCalls = (): number =>
    kit.bed.fleet.calls.filter(({ server, path }) => !server.startsWith('engine') && path !== '/healthz').length

  test.each<SimFault>(['fail', 'cut', 'freeze', { nonsense: '<html>' }])(
    'receives no calls of turns after three failures: %j',
    async (fault) => {
      kit.cache = kit.bed.connect({ answerMs: 300 })
      // It learns how long chunks are.
      await kit.serve(kit.first, stored)
      failWith(fault)
      const failures = [await missed(), await missed(), await missed()]
      expect(failures).toEqual(['load_failed', 'load_failed', 'load_failed'])
      const before = storeCalls()
      const { prepared, finished } = await kit.serve(kit.second, stored)
      const cause = { name: 'StoreUnavailableFault' }
      expect(prepared.presence).toMatchObject({ kind: 'miss', reason: 'kv_store_unavailable', cause })
      expect(finished).toMatchObject({ kind: 'none', reason: 'kv_store_unavailable' })
      expect(storeCalls()).toBe(before)
    },
  )

  test('receives calls again once it answers; meanwhile it is one warning, with address and cause', async () => {
    const lines: string[] = []
    const write = (text: string) => void lines.push(text)
    kit.cache = kit.bed.connect({ warnings: createWarnings({ warn: write, info: write }) })
    failWith('fail')
    await eventually(async () => (await missed()) === 'kv_store_unavailable')
    for (let turn = 0; turn < 5; turn += 1) await missed()
    kit.bed.fleet.onCall(() => undefined)
    await eventually(async () => (await presence()).kind === 'hit')
    const subject = `The KV store ${kit.bed.fleet.coordinator.address} is`
    expect(lines).toEqual([expect.stringMatching(`^${subject} unavailable: .*500`), `${subject} available again`])
  })

  test('receives calls after two failures', async () => {
    failWith('fail')
    await presence()
    await presence()
    kit.bed.fleet.onCall(() => undefined)
    expect((await presence()).kind).toBe('hit')
    failWith('fail')
    expect([await missed(), await missed()]).toEqual(['load_failed', 'load_failed'])
    kit.bed.fleet.onCall(() => undefined)
    expect((await presence()).kind).toBe('hit')
  })
})
