import { randomBytes } from 'node:crypto'
import { readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { createEngineHttp } from '../../../src/engines/engine-http.ts'
import type { Isolation } from '../../../src/kvcache/cache-salts.ts'
import type { KvTurn } from '../../../src/kvcache/kv-connector.ts'
import { createEventSources } from '../../../src/kvcache/kv-events/event-sources.ts'
import { createKvEvents, type KvEvents } from '../../../src/kvcache/kv-events/kv-events.ts'
import { createLmcacheConnector } from '../../../src/kvcache/lmcache/connector.ts'
import { inGateway, type KvTestBed, type TestPod } from '../../contract/kvcache/kv-test-bed.ts'
import { createOpenLedger } from '../../contract/kvcache/open-ledger.ts'
import { connectorParts } from '../../support/connector-parts.ts'
import { eventually } from '../../support/eventually.ts'
import { orderServer } from './control.ts'
import { vllmFleet, vllmPod } from './fleet.ts'
import { completeOn, tokenize } from './pod.ts'
import { freshPrompt } from './prompts.ts'
import { saltsInStore } from './salts.ts'
import { lookUp } from './store.ts'

/** The KV events of the fleet's engines, for one bed after the other. */
export const followFleet = (): KvEvents =>
  createKvEvents({
    ...connectorParts({ pods: () => vllmFleet().pods.map(({ address }) => address) }),
    sources: createEventSources(createEngineHttp({ callsPerPod: 1 })),
    pollMs: 100,
    askEveryMs: 200,
  })

/** The lmcache connector on the running fleet, for the contract suites. */
export const startVllmBed = async (options: {
  readonly isolation: Isolation
  readonly events: KvEvents
}): Promise<KvTestBed> => {
  const fleet = vllmFleet()
  // Salts and turn ids differ from those of the bed before, whose events the engines still send.
  const secret = randomBytes(32).toString('hex')
  const name = randomBytes(6).toString('hex')
  /** Of turns of this bed. */
  const salts = new Set<string>()
  const connectors: ReturnType<typeof createLmcacheConnector>[] = []
  let ledger = createOpenLedger()

  const named = <Turn extends KvTurn>(turn: Turn): Turn => ({
    ...turn,
    model: fleet.servedModelName,
    turnId: `${name}-${turn.turnId}`,
  })

  const connect: KvTestBed['connect'] = (wishes = {}) => {
    const connector = createLmcacheConnector(
      {
        lmcache: {
          url: fleet.coordinatorUrl,
          instances: fleet.pods.map(({ address, lmcacheInstance }) => `${address}=${lmcacheInstance}`),
          worldSize: 1,
        },
        isolation: options.isolation,
        callTimeoutMs: 10_000,
        minTokens: 1,
      },
      connectorParts({ secret, pods: () => wishes.pods ?? fleet.pods.map(({ address }) => address) }),
      { ledger, events: { ...options.events, stop: async () => {} } },
    )
    connectors.push(connector)
    return inGateway({
      ...connector,
      prepare: async (turn, budget) => {
        await untilHeard(options.events)
        const prepared = await connector.prepare(named(turn), budget)
        salts.add(prepared.fields['cache_salt'] as string)
        return prepared
      },
      finish: (turn) => connector.finish(named(turn)),
      release: (turn) => connector.release(named(turn)),
    })
  }

  return {
    pods: [podOf(0, { events: options.events, salts }), podOf(1, { events: options.events, salts })],
    newPrompt: () => freshPrompt(400),
    more: ` ${freshPrompt(200)}`,
    connect,
    artefacts: async () => ledger.names(),
    damage: async (artefactId) => {
      if (!ledger.names().includes(artefactId)) throw new Error('there is no such artefact')
      const names = (await readdir(fleet.l2Directory)).filter((file) =>
        salts.has(/@([^@]+)\.data$/.exec(file)?.[1] ?? ''),
      )
      await Promise.all(names.map((file) => truncate(join(fleet.l2Directory, file), 10)))
    },
    loseState: () => {
      ledger = createOpenLedger()
    },
    close: async () => {
      await Promise.all(connectors.map((connector) => connector.close()))
    },
  }
}

const untilHeard = (events: KvEvents): Promise<unknown> =>
  eventually(() => vllmFleet().pods.every(({ address }) => events.isLive(address)))

const podOf = (
  number: number,
  parts: {
    readonly events: KvEvents
    readonly salts: ReadonlySet<string>
  },
): TestPod => {
  const pod = vllmPod(number)
  const { events, salts } = parts
  return {
    address: pod.address,
    run: ({ prompt, fields }) => completeOn(pod, { prompt, fields: { max_tokens: 2, ignore_eos: true, ...fields } }),
    // What LMCache could load into this engine. The engine's own memory cannot be emptied from outside.
    probe: async (prompt) => {
      const tokenIds = await tokenize(pod, prompt)
      const ours = [...(await saltsInStore())].filter((salt) => salts.has(salt))
      const lengths = await Promise.all(
        ours.map(async (salt) => {
          const { results } = await lookUp({ tokenIds, salt })
          const missing = results.findIndex(({ placements }) => placements.length === 0)
          return (missing === -1 ? results.length : missing) * vllmFleet().chunkTokens
        }),
      )
      return Math.max(0, ...lengths)
    },
    // The engine loads by itself.
    loads: () => 0,
    holdLoads: () => () => {},
    restart: async () => {
      // With the memory beside it, as when a pod is replaced.
      await orderServer(`lmcache-${number}`, 'restart')
      await orderServer(`vllm-${number}`, 'restart')
      await untilHeard(events)
    },
  }
}
