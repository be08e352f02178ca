import { readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { packageRoot } from '../../../playground/paths.ts'
import { loadConnector } from '../../../src/kvcache/load-connector.ts'
import { describeKvConnector } from '../../contract/kvcache/kv-connector-suite.ts'
import { describeKvRemoval } from '../../contract/kvcache/kv-removal-suite.ts'
import {
  anySignal,
  inGateway,
  type KvTestBed,
  type KvTraits,
  more,
  newPrompt,
  newSession,
  sweep,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import { connectorParts } from '../../support/connector-parts.ts'
import { flipByte } from '../support/flip-byte.ts'
import { countingFromNow, type SlotEngines, startSlotEngines } from './slots-test-bed.ts'
import { startEmbeddedEngine } from './start-embedded-engine.ts'

const modulePath = join(packageRoot(), 'examples/slot-files-connector.mjs')

/** The example keeps no checksums. */
const traits: KvTraits = {
  loadedBy: 'gateway',
  sharing: 'session',
  damage: ['cut'],
  sweeps: true,
  storesElsewhere: false,
}

describe('example of a connector', () => {
  let engines: SlotEngines
  beforeAll(async () => {
    engines = await startSlotEngines(startEmbeddedEngine)
  }, 300_000)
  afterAll(() => engines.end())

  const makeBed = async (): Promise<KvTestBed> => {
    const { pods, kvDirectory } = engines
    const files = () => readdir(kvDirectory)
    return {
      pods: [countingFromNow(pods[0]), countingFromNow(pods[1])],
      newPrompt,
      more,
      connect: async (wishes = {}) => {
        const options = { directory: kvDirectory, isolation: 'tenant', callTimeoutMs: 10_000, minTokens: 1 } as const
        const parts = connectorParts({ pods: () => wishes.pods ?? pods.map(({ address }) => address) })
        return inGateway(await (await loadConnector(modulePath)).create(options, parts))
      },
      artefacts: async () => (await files()).filter((file) => file.endsWith('.slotkv')),
      damage: async (artefactId, how) => {
        const path = join(kvDirectory, artefactId)
        if (how === 'cut') return truncate(path, (await stat(path)).size - 100)
        return flipByte(path)
      },
      // All that its connectors share lies in the folder.
      loseState: () => {},
      close: async () => {
        for (const file of await files()) await rm(join(kvDirectory, file), { force: true })
      },
    }
  }

  test('slots that a killed gateway locked are free again after a sweep', async () => {
    const bed = await makeBed()
    const cache = await bed.connect()
    const [{ address: pod }] = bed.pods
    for (const slot of [0, 1]) {
      const lock = join(engines.kvDirectory, `${encodeURIComponent(pod)}-${slot}.lock`)
      await writeFile(lock, JSON.stringify({ pod, slot, session: newSession().key, sinceMs: 0 }))
    }
    const prepare = async () =>
      (await cache.prepare(turnOf(newSession(), { address: pod }), { signal: anySignal() })).presence
    expect(await prepare()).toMatchObject({ kind: 'miss', reason: 'no_slot' })
    await sweep(cache)
    expect(await prepare()).toMatchObject({ kind: 'miss', reason: 'nothing_stored' })
    await bed.close()
  })

  describeKvConnector('slot-files', makeBed, traits)
  describeKvRemoval('slot-files', makeBed, traits)
})
