/** How one operation ended. */
export interface EndedOperation {
  /** The method's name. */
  readonly op: string
  readonly durationMs: number
  readonly failed: boolean
}

type Method = (...args: readonly unknown[]) => unknown

/**
 * An object that is `target` in everything, but whose methods tell how long each call took until its promise settled. Methods that `target` is given
 * later are not measured. `onEnded` must not throw.
 */
export const measureOperations = <Target extends object>(
  target: Target,
  onEnded: (operation: EndedOperation) => void,
): Target => {
  const measure =
    (op: string, method: Method): Method =>
    (...args) => {
      const startedAtMs = performance.now()
      const ended = (failed: boolean): void => onEnded({ op, durationMs: performance.now() - startedAtMs, failed })
      try {
        const result = Reflect.apply(method, target, args)
        // Whoever called waits for the same promise: one of our own in between would cost every call two more steps.
        void Promise.resolve(result).then(
          () => ended(false),
          () => ended(true),
        )
        return result
      } catch (error) {
        ended(true)
        throw error
      }
    }

  const measured: Target = Object.create(target)
  for (const [op, method] of methodsOf(target)) Object.defineProperty(measured, op, { value: measure(op, method) })
  return measured
}

/** Its own methods and those of its classes. */
const methodsOf = (target: object): ReadonlyMap<string, Method> => {
  const methods = new Map<string, Method>()
  for (let owner: object | null = target; owner !== null && owner !== Object.prototype; owner = prototypeOf(owner)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (isMethod(value) && name !== 'constructor' && !methods.has(name)) methods.set(name, value)
    }
  }
  return methods
}

const prototypeOf = (value: object): object | null => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return typeof prototype === 'object' ? prototype : null
}

const isMethod = (value: unknown): value is Method => typeof value === 'function'
