import fc from 'fast-check'
import type { SlotContent, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'

/** One call to a ledger. Times are `0`, which has run out by the next call, or `long`, which never does. */
export type Step =
  | {
      readonly kind: 'claim'
      readonly session: SessionKey
      readonly turnId: string
      readonly idle: readonly boolean[]
      readonly leaseMs: number
      readonly loadMs: number
    }
  | { readonly kind: 'reload'; readonly slot: number; readonly turnId: string; readonly loadMs: number }
  | {
      readonly kind: 'settle'
      readonly slot: number
      readonly turnId: string
      readonly content: SlotContent
      readonly closeMs: number
    }
  | { readonly kind: 'beginSave'; readonly slot: number; readonly session: SessionKey; readonly turnId: string }
  | { readonly kind: 'release'; readonly slot: number; readonly turnId: string; readonly content?: SlotContent }
  | {
      readonly kind: 'seize'
      readonly slot: number
      readonly turnId: string
      readonly session: SessionKey | undefined
      readonly leaseMs: number
    }
  | { readonly kind: 'wiped'; readonly slot: number; readonly turnId: string }
  | { readonly kind: 'addTrace'; readonly slot: number; readonly session: SessionKey }
  | { readonly kind: 'forgetPod' }

export const pod = 'pod:1'
export const slotIds = [0, 1, 2]
export const sessions = ['alice', 'bob', 'carol'] as SessionKey[]
export const long = 3_600_000

const session = fc.constantFrom(...sessions)
const slot = fc.constantFrom(...slotIds)
const span = fc.oneof({ weight: 4, arbitrary: fc.constant(long) }, { weight: 1, arbitrary: fc.constant(0) })
const turnOf = (owner: string): fc.Arbitrary<string> => fc.constantFrom(`${owner}-1`, `${owner}-2`)
const turnId = session.chain(turnOf)
const cleaner = turnOf('cleaner')
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
const ownTurn = session.chain((owner) => turnOf(owner).map((id) => ({ session: owner, turnId: id })))

const claimStep = fc
  .tuple(ownTurn, fc.array(fc.boolean(), { minLength: slotIds.length, maxLength: slotIds.length }), span, span)
  .map(([turn, idle, leaseMs, loadMs]): Step => ({ kind: 'claim', ...turn, idle, leaseMs, loadMs }))
const reloadStep = fc.record({ kind: fc.constant('reload' as const), slot, turnId, loadMs: span })
const saveStep = fc.tuple(slot, ownTurn).map(([id, turn]): Step => ({ kind: 'beginSave', slot: id, ...turn }))
const wipedStep = fc.record({ kind: fc.constant('wiped' as const), slot, turnId: cleaner })
const releaseStep = fc.record(
  { kind: fc.constant('release' as const), slot, turnId: fc.oneof(turnId, cleaner), content },
  { requiredKeys: ['kind', 'slot', 'turnId'] },
)
const settleStep = (closeMs: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.record({ kind: fc.constant('settle' as const), slot, turnId, content, closeMs })
const traceStep = fc.record({ kind: fc.constant('addTrace' as const), slot, session })
const seizeStep = fc.record({
  kind: fc.constant('seize' as const),
  slot,
  turnId: cleaner,
  session: fc.oneof(session, fc.constant(undefined)),
  leaseMs: span,
})

/** Any sequence of calls. `closing`: slots are also closed. */
export const anySteps = ({ closing }: { readonly closing: boolean }): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.oneof(
      { weight: 30, arbitrary: claimStep },
      { weight: 20, arbitrary: settleStep(closing ? span : fc.constant(0)) },
      { weight: 10, arbitrary: reloadStep },
      { weight: 10, arbitrary: saveStep },
      { weight: 20, arbitrary: releaseStep },
      { weight: 10, arbitrary: seizeStep },
      { weight: 10, arbitrary: wipedStep },
      { weight: 5, arbitrary: traceStep },
      { weight: 1, arbitrary: fc.constant<Step>({ kind: 'forgetPod' }) },
    ) as fc.Arbitrary<Step>,
    { maxLength: 40 },
  )

/** Makes the call. `revision` is what the turn saw at its last claim. */
export const take = (ledger: SlotLedger, step: Step, revision: number): Promise<unknown> => {
  switch (step.kind) {
    case 'claim': {
      const slots = slotIds.map((id, index) => ({ id, idle: step.idle[index] === true }))
      return ledger.claim({ pod, ...step, slots })
    }
    case 'reload':
      return ledger.reload({ pod, ...step, revision })
    case 'settle':
      return ledger.settle({ pod, ...step })
    case 'beginSave':
      return ledger.beginSave({ pod, ...step, leaseMs: long })
    case 'release':
      return ledger.release({ pod, ...step })
    case 'seize':
      return ledger.seize({ pod, ...step })
    case 'wiped':
      return ledger.wiped({ pod, ...step })
    case 'addTrace':
      return ledger.addTrace({ pod, ...step })
    case 'forgetPod':
      return ledger.forgetPod(pod)
  }
}
