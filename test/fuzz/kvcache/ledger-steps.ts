import fc from 'fast-check'
import type { SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'

export const pod = 'pod:1'
/** Where nothing is claimed. */
const otherPod = 'pod:2'
export const slotIds = [0, 1, 2]
export const sessions = ['alice', 'bob', 'carol'] as SessionKey[]
export const long = 3_600_000

const weights = { claim: 30, renew: 15, release: 25, seize: 10 } as const
type Kind = keyof typeof weights
const kinds = Object.entries(weights).flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind as Kind))

/** One call to a ledger; which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom(...kinds),
  slot: fc.constantFrom(...slotIds),
  session: fc.constantFrom(...sessions),
  /** Of two turns of the session, or of two sweeps. */
  number: fc.constantFrom(1, 1, 1, 2),
  idle: fc.array(fc.boolean(), { minLength: slotIds.length, maxLength: slotIds.length }),
  /** The last completion in each slot. */
  tasks: fc.array(fc.constantFrom(1, 2, undefined), { minLength: slotIds.length, maxLength: slotIds.length }),
  /** Has run out by the next call, or never does. */
  leaseMs: fc.constantFrom<number>(long, long, long, long, 0),
  artefactId: fc.constantFrom('a1', 'a2', undefined),
  content: fc.option(
    fc.record({ artefactId: fc.constantFrom('a1', 'a2'), tokens: fc.nat(9_999), mark: fc.constantFrom('m1', 'm2') }),
    { nil: undefined },
  ),
  isLong: fc.boolean(),
  mayWait: fc.boolean(),
  saving: fc.boolean(),
  isBySweep: fc.constantFrom(true, false, false, false),
})
export type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

export const anySteps = fc.array(anyStep, { maxLength: 40, size: 'max' })

export const turnOf = ({ kind, session, number, isBySweep }: Step): string => {
  const isSweep = kind === 'seize' || (kind !== 'claim' && isBySweep)
  return `${isSweep ? 'sweep' : session}-${number}`
}

export const take = (ledger: SlotLedger, step: Step): Promise<unknown> => {
  const { slot, session, leaseMs, artefactId, content, isLong, mayWait, saving } = step
  const turn = { pod, slot, turnId: turnOf(step) }
  switch (step.kind) {
    case 'claim': {
      const slots = slotIds.map((id, index) => ({ id, idle: step.idle[index] === true, task: step.tasks[index] }))
      return ledger.claim({ pod, session, turnId: turn.turnId, leaseMs, artefactId, isLong, mayWait, slots })
    }
    case 'renew':
      return ledger.renew([turn, { ...turn, pod: otherPod }], { leaseMs, saving })
    case 'release':
      return ledger.release({ ...turn, content })
    case 'seize':
      return ledger.seize({ ...turn, leaseMs, ...(mayWait ? { session } : {}) })
  }
}
