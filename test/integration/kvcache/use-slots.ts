import { afterEach } from '@jest/globals'
import type { SlotTurn } from '../../../src/kvcache/slots/slot-ledger.ts'
import { anySignal, finishTurn, turnOf } from '../../contract/kvcache/kv-test-bed.ts'
import { useKvBed } from '../../contract/kvcache/use-kv-bed.ts'
import type { SlotsTestBed } from './slots-test-bed.ts'

/** What happens between the response of a turn and its finish. */
export type Meanwhile = (place: SlotTurn) => Promise<unknown>

/** A kit for each test, and what tests of slots do with it. */
export const useSlots = (make: () => Promise<SlotsTestBed>) => {
  const kit = useKvBed(make)
  afterEach(() => {
    for (const pod of kit.bed.pods) pod.proxy.onRequest(() => {})
  })
  return {
    kit,
    /** Serves the session's first turn on the first pod. */
    serveWith: async (meanwhile: Meanwhile) => {
      const turn = turnOf(kit.session, kit.first)
      const { fields, claim } = await kit.cache.prepare(turn, { signal: anySignal() })
      const usage = await kit.first.run({ prompt: kit.prompt, sessionId: kit.session.id, fields })
      await meanwhile({ pod: kit.first.address, slot: Number(fields['id_slot']), turnId: turn.turnId })
      return finishTurn(kit.cache, turn, { claim, usage })
    },
    /** The slot of the first pod in which the session's KV lies. */
    ownSlot: async (): Promise<number> => {
      const entries = await kit.bed.ledger.list(kit.first.address)
      return entries.find(({ owner }) => owner === kit.session.key)?.slot ?? -1
    },
  }
}
