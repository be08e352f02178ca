import fc from 'fast-check'
import type { SlotContent, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'

export const pod = 'pod:1'
export const slotIds = [0, 1, 2]
export const sessions = ['alice', 'bob', 'carol'] as SessionKey[]
export const long = 3_600_000

const weights = {
  claim: 30,
  settle: 20,
  reload: 10,
  beginSave: 10,
  release: 20,
  seize: 10,
  wiped: 10,
  addTrace: 5,
  forgetPod: 1,
} as const
type Kind = keyof typeof weights
const kinds = Object.entries(weights).flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind as Kind))

/** Has run out by the next call, or never does. */
const span = fc.constantFrom<number>(long, long, long, long, 0)
const content = fc.oneof(
  fc.constant<SlotContent>({ kind: 'clean' }),
  fc.constant<SlotContent>({ kind: 'unknown' }),
  fc.record({
    kind: fc.constant('holds' as const),
    artefactId: fc.constantFrom('a1', undefined),
    tokens: fc.nat(9_999),
    mark: fc.constantFrom('m1', 'm2'),
  }),
)

/** One call to a ledger; which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom(...kinds),
  slot: fc.constantFrom(...slotIds),
  session: fc.constantFrom(...sessions),
  /** Of two turns of the session, or of two cleaners. */
  number: fc.constantFrom(1, 2),
  idle: fc.array(fc.boolean(), { minLength: slotIds.length, maxLength: slotIds.length }),
  leaseMs: span,
  loadMs: span,
  closeMs: span,
  content,
  /** Whether a release is a cleaner's, and tells the content; whether a seizure names the session. */
  isByCleaner: fc.constantFrom(true, false, false, false),
  namesSession: fc.boolean(),
  tellsContent: fc.boolean(),
})
export type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

export const anySteps = fc.array(anyStep, { maxLength: 40 })

export const turnOf = ({ kind, session, number, isByCleaner }: Step): string => {
  const isCleaner = kind === 'seize' || kind === 'wiped' || (kind === 'release' && isByCleaner)
  return `${isCleaner ? 'cleaner' : session}-${number}`
}

/** Makes the call. `revision` is what the turn saw at its last claim. */
export const take = (ledger: SlotLedger, step: Step, revision: number): Promise<unknown> => {
  const { slot, session, leaseMs, loadMs, content } = step
  const turn = { pod, slot, turnId: turnOf(step) }
  switch (step.kind) {
    case 'claim': {
      const slots = slotIds.map((id, index) => ({ id, idle: step.idle[index] === true }))
      return ledger.claim({ pod, session, turnId: turn.turnId, leaseMs, loadMs, slots })
    }
    case 'reload':
      return ledger.reload({ ...turn, revision, loadMs })
    case 'settle':
      return ledger.settle({ ...turn, content, closeMs: step.closeMs })
    case 'beginSave':
      return ledger.beginSave({ ...turn, session, leaseMs: long })
    case 'release':
      return ledger.release({ ...turn, ...(step.tellsContent ? { content } : {}) })
    case 'seize':
      return ledger.seize({ ...turn, session: step.namesSession ? session : undefined, leaseMs })
    case 'wiped':
      return ledger.wiped(turn)
    case 'addTrace':
      return ledger.addTrace({ pod, slot, session })
    case 'forgetPod':
      return ledger.forgetPod(pod)
  }
}
