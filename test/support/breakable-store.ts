import type { RemovalQueue } from '../../src/sessions/removal-queue.ts'
import type { SessionDirectory } from '../../src/sessions/session-directory.ts'
import { type SessionStore, StoreUnavailableError } from '../../src/sessions/session-store.ts'

type Store = SessionStore & RemovalQueue & SessionDirectory
type Operation = keyof Store

/** A store whose connection a test can cut. */
export interface BreakableStore extends Store {
  /** From now on these operations fail, and no others; none: all work. */
  breakDown(operations: readonly Operation[] | 'all'): void
  /** The next `times` calls of an operation fail. */
  failNext(operation: Operation, times: number): void
  /** Every call of an operation waits for `action` first, and fails when that does. */
  before(operation: Operation, action: () => unknown): void
}

export const createBreakableStore = (store: Store): BreakableStore => {
  let broken: readonly Operation[] | 'all' = []
  const failures = new Map<PropertyKey, number>()
  const actions = new Map<PropertyKey, () => unknown>()

  const controls: Pick<BreakableStore, 'breakDown' | 'failNext' | 'before'> = {
    breakDown: (operations) => {
      broken = operations
    },
    failNext: (operation, times) => {
      failures.set(operation, times)
    },
    before: (operation, action) => {
      actions.set(operation, action)
    },
  }

  const check = (operation: PropertyKey): void => {
    const left = failures.get(operation) ?? 0
    failures.set(operation, Math.max(0, left - 1))
    if (left > 0 || broken === 'all' || broken.some((name) => name === operation)) {
      throw new StoreUnavailableError(`${String(operation)}: connect ECONNREFUSED 10.1.2.3:6379`)
    }
  }

  const call = async (operation: PropertyKey, told: readonly unknown[]): Promise<unknown> => {
    check(operation)
    await actions.get(operation)?.()
    const method = Reflect.get(store, operation) as (...args: readonly unknown[]) => Promise<unknown>
    return Reflect.apply(method, store, told)
  }

  return new Proxy(store as BreakableStore, {
    get: (_, name) => {
      // It asks no server.
      if (name === 'areTogether') return () => true
      return name in controls ? Reflect.get(controls, name) : (...told: readonly unknown[]) => call(name, told)
    },
  })
}
