import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { admitTurn, type Choice } from '../../../src/context/admit-turn.ts'
import type { PreparedTurn } from '../../../src/kvcache/kv-cache.ts'
import { createLlamacppSlotsConnector } from '../../../src/kvcache/llamacpp-slots/connector.ts'
import {
  anySignal,
  finishTurn,
  inGateway,
  newPrompt,
  newSession,
  releaseTurn,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import { connectorParts } from '../../support/connector-parts.ts'
import { eventually } from '../../support/eventually.ts'
import { watchedScope } from '../../support/gateway-request.ts'
import { admissionBy, planOf } from '../../support/planned-admission.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { type SlotEngines, type SlotPod, startSlotEngines } from './slots-test-bed.ts'
import { startEmbeddedEngine } from './start-embedded-engine.ts'

const redis = useTestRedis()
let engines: SlotEngines
let first: TestGateway
let second: TestGateway
beforeAll(async () => {
  engines = await startSlotEngines(startEmbeddedEngine)
  first = await startGateway(engines)
  second = await startGateway(engines)
  const subscribed = async () => (await redis().raw.pubsub('NUMSUB', 'ctx:kv:released'))[1]
  await eventually(async () => expect(await subscribed()).toBe(2))
}, 300_000)
afterAll(async () => {
  await Promise.all([first.cache.close(), second.cache.close()])
  await engines.end()
})

type TestGateway = Awaited<ReturnType<typeof startGateway>>

/** Queue and connector of a gateway, whose clock stands still: it never looks for room by itself. */
const startGateway = async ({ pods: [pod], kvDirectory }: SlotEngines) => {
  const admission = admissionBy(planOf({}, [pod.address]), { nowMs: () => 0, startTimer: () => () => {} })
  const cache = inGateway(
    createLlamacppSlotsConnector(
      { directory: kvDirectory, callTimeoutMs: 10_000, minTokens: 16 },
      connectorParts({
        pods: () => [pod.address],
        redis: await redis().connect({ keyPrefix: 'ctx:' }),
        roomAt: (at) => admission.roomAt(at),
      }),
    ),
  )
  const route = routeTo(pod)
  /** Resolves when the turn of a new session has a slot. */
  const start = async () => {
    const turn = turnOf(newSession(), pod)
    const asked = { turnId: turn.turnId, tenant: undefined, route, seeksRoom: true, loadMs: 0 }
    const prepared = await admitTurn({ admission, events: { routed: () => {} } }, asked, watchedScope(), async () => {
      const made = await cache.prepare(turn, { signal: anySignal() })
      const hasRoom = made.presence.kind === 'hit' || made.presence.reason !== 'no_slot'
      return { hasRoom, accept: () => made, withdraw: async () => {} }
    })
    return { turn, prepared }
  }
  return { admission, cache, start }
}

interface PodChoice extends Choice<PodChoice> {}

const routeTo = ({ address }: SlotPod): PodChoice => {
  const expect = () => ({ isShort: true, prefillMs: 0 })
  const route: PodChoice = {
    pod: address,
    policy: 'only',
    objective: undefined,
    input: { affinityKey: undefined, lastPod: undefined, model: 'tiny' },
    pool: { predictor: { expect } },
    among: (mayChoose) => (mayChoose(address) ? route : undefined),
  }
  return route
}

const slotOf = ({ fields }: PreparedTurn) => fields['id_slot']

test.each(['its KV is saved', 'its client has left'])(
  'a turn that waits takes the slot of a turn of another gateway when %s',
  async (how) => {
    const [pod] = engines.pods
    const [ending, other] = [await first.start(), await first.start()]
    const waiting = second.start()
    await eventually(() => second.admission.waiting() === 1)

    const { turn, prepared } = ending
    if (how === 'its client has left') await releaseTurn(first.cache, turn, prepared)
    else {
      const usage = await pod.run({ prompt: newPrompt(), fields: prepared.fields })
      expect(await finishTurn(first.cache, turn, { claim: prepared.claim, usage })).toMatchObject({ kind: 'stored' })
    }

    const started = await waiting
    expect(slotOf(started.prepared)).toBe(slotOf(prepared))
    await releaseTurn(second.cache, started.turn, started.prepared)
    await releaseTurn(first.cache, other.turn, other.prepared)
  },
)
