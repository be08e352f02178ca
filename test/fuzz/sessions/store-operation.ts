import * as fc from 'fast-check'
import type { NewSession } from '../../../src/sessions/session-store.ts'

/** All times are multiples of this, so that the moments a real store needs to answer never decide anything. */
export const unitMs = 100_000
export const unitSeconds = unitMs / 1000

interface Fields {
  /** Which of a few sessions, tenants and turns. */
  readonly session: number
  readonly tenant: number
  readonly turn: number
  /** Whether the step is one of a turn that was begun, if there is one, and not of any. */
  readonly isOfOpenTurn: boolean
  /** In units of time. */
  readonly time: number
  readonly otherTime: number
  /** Which of the begun turns, the announced artefacts or the claimed removals, counted from the latest. */
  readonly back: number
  readonly count: number
  readonly digest: number
  /** Of a commit: 1 for a turn of an earlier life of the session. */
  readonly body: number
  readonly expiry: 'keep' | 'set' | 'slide'
  readonly retry: 'none' | NonNullable<NewSession['retryOf']>['use']
  readonly text: string
}

/** One step against a store; which fields matter depends on the name. */
export type StoreOperation = Fields & { readonly name: OperationName }

const weights = {
  create: 9,
  begin: 9,
  beginNamed: 6,
  fork: 5,
  complete: 10,
  abandon: 2,
  announce: 4,
  commit: 5,
  store: 6,
  note: 1,
  get: 2,
  list: 2,
  setTtl: 1,
  remove: 3,
  expireDue: 2,
  evict: 2,
  dropArtefacts: 2,
  claim: 4,
  ack: 4,
  retryLater: 1,
  counts: 1,
  advance: 5,
} as const

export type OperationName = keyof typeof weights

const names = Object.entries(weights).flatMap(([name, weight]) =>
  Array.from({ length: weight }, () => name as OperationName),
)

export const storeOperation: fc.Arbitrary<StoreOperation> = fc.record({
  name: fc.constantFrom(...names),
  session: fc.constantFrom(0, 0, 1, 1, 2, 2, 3, 4, 5),
  // Mostly the same tenant, or hardly any turn would find its session.
  tenant: fc.constantFrom(0, 0, 0, 0, 1),
  turn: fc.nat({ max: 3 }),
  // Else hardly a session would get beyond its first turn.
  isOfOpenTurn: fc.constantFrom(true, true, true, false),
  time: fc.integer({ min: 1, max: 5 }),
  otherTime: fc.integer({ min: 1, max: 5 }),
  back: fc.nat({ max: 3 }),
  count: fc.integer({ min: 1, max: 4 }),
  digest: fc.nat({ max: 1 }),
  body: fc.constantFrom(0, 0, 0, 1),
  expiry: fc.constantFrom('keep', 'keep', 'set', 'slide'),
  retry: fc.constantFrom('none', 'none', 'find-or-record', 'find-young-or-record', 'record-only'),
  text: fc.string({ unit: 'binary', maxLength: 80 }),
})

const plain: Omit<StoreOperation, 'name'> = {
  session: 0,
  tenant: 0,
  turn: 0,
  isOfOpenTurn: true,
  time: 5,
  otherTime: 2,
  back: 0,
  count: 1,
  digest: 0,
  body: 0,
  expiry: 'keep',
  retry: 'none',
  text: '',
}
const inOrder = (names: readonly OperationName[], change: Partial<StoreOperation>): readonly StoreOperation[] =>
  names.map((name) => ({ ...plain, ...change, name }))

/** What operations begin with: nothing, or what shares stored KV among sessions, or among prompts of a name. */
export const storeStart: fc.Arbitrary<readonly StoreOperation[]> = fc.constantFrom(
  [],
  inOrder(['create', 'complete', 'store', 'fork'], {}),
  [
    ...inOrder(['beginNamed', 'complete', 'store'], { session: 2 }),
    ...inOrder(['beginNamed', 'complete', 'fork'], { session: 2, count: 2, expiry: 'slide' }),
  ],
)
