import fc from 'fast-check'
import type { ChunkLedger, UnsettledSalt } from '../../../src/kvcache/chunks/chunk-ledger.ts'

/** One call to a ledger. Leases are `0`, which have run out by the next call, or `long`, which never do. */
export type Step =
  | { readonly kind: 'open'; readonly salt: string; readonly turnId: string; readonly leaseMs: number }
  | { readonly kind: 'settle'; readonly salt: string; readonly turnId: string; readonly tidy: boolean }
  | { readonly kind: 'hold'; readonly salt: string; readonly name: string; readonly chunks: readonly string[] }
  /** `times` at once. */
  | { readonly kind: 'release'; readonly salt: string; readonly name: string; readonly times: number }
  | { readonly kind: 'deleted'; readonly salt: string; readonly name: string }
  | { readonly kind: 'claimUnheld'; readonly salt: string; readonly name: string; readonly chunks: readonly string[] }
  | { readonly kind: 'unsettled' }
  /** With the mark that `unsettled` gave that many answers ago. */
  | { readonly kind: 'swept'; readonly salt: string; readonly answersAgo: number }

export const salts = ['s1', 's2']
export const names = ['a', 'b', 'c', 'd']
export const turnIds = ['t1', 't2']
export const long = 3_600_000

const salt = fc.constantFrom(...salts)
const name = fc.constantFrom(...names)
const turnId = fc.constantFrom(...turnIds)
const chunks = fc.array(fc.constantFrom('c1', 'c2', 'c3', 'c4', 'c5', 'c6'), { maxLength: 5 })
const leaseMs = fc.constantFrom(long, 0)

const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('open' as const), salt, turnId, leaseMs }) },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('settle' as const), salt, turnId, tidy: fc.boolean() }) },
  { weight: 30, arbitrary: fc.record({ kind: fc.constant('hold' as const), salt, name, chunks }) },
  {
    weight: 20,
    arbitrary: fc.record({ kind: fc.constant('release' as const), salt, name, times: fc.constantFrom(1, 2, 3) }),
  },
  { weight: 15, arbitrary: fc.record({ kind: fc.constant('deleted' as const), salt, name }) },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('claimUnheld' as const), salt, name, chunks }) },
  { weight: 10, arbitrary: fc.constant({ kind: 'unsettled' as const }) },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('swept' as const), salt, answersAgo: fc.nat(2) }) },
) satisfies fc.Arbitrary<Step>

export const anySteps: fc.Arbitrary<readonly Step[]> = fc.array(step, { maxLength: 60 })

/** What `unsettled` answered, newest first. */
export type Answers = readonly (readonly UnsettledSalt[])[]

/** The entry of a salt some answers ago, or one that no ledger gave out. */
export const entryOf = (answers: Answers, step: Extract<Step, { kind: 'swept' }>): UnsettledSalt =>
  answers[step.answersAgo]?.find((entry) => entry.salt === step.salt) ?? { salt: step.salt, mark: 'none', ageMs: 0 }

/** Makes the call, and brings its answer into a form that can be compared. */
export const take = async (ledgers: readonly ChunkLedger[], step: Step, answers: Answers): Promise<unknown> => {
  const [ledger] = ledgers
  if (ledger === undefined) throw new Error('No ledger')
  switch (step.kind) {
    case 'open':
      return await ledger.open(step)
    case 'settle':
      return await ledger.settle(step)
    case 'hold':
      return await ledger.hold(step)
    case 'release': {
      const calls = Array.from({ length: step.times }, (_none, index) => ledgers[index % ledgers.length] ?? ledger)
      const released = await Promise.all(calls.map((each) => each.release(step)))
      return released.map(({ unheld, lastOfSalt }) => ({ unheld: [...unheld].sort(), lastOfSalt }))
    }
    case 'deleted':
      return await ledger.deleted(step)
    case 'claimUnheld':
      return [...(await ledger.claimUnheld(step))].sort()
    case 'unsettled':
      return await ledger.unsettled(100)
    case 'swept':
      return await ledger.swept(entryOf(answers, step))
  }
}
