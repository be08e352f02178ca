/** How one operation ended. */
export interface EndedOperation {
  /** The method's name. */
  readonly op: string
  readonly durationMs: number
  readonly failed: boolean
}

type Method = (...args: readonly unknown[]) => unknown

/** The same object, whose methods tell how long each call took until its promise settled. `onEnded` must not throw. */
export const measureOperations = <Target extends object>(
  target: Target,
  onEnded: (operation: EndedOperation) => void,
): Target => {
  const measured = new Map<string, Method>()

  const measure = (op: string, method: Method): Method => {
    const known = measured.get(op)
    if (known !== undefined) return known
    const measuredMethod = async (...args: readonly unknown[]): Promise<unknown> => {
      const startedAtMs = performance.now()
      let failed = true
      try {
        const result: unknown = await Reflect.apply(method, target, args)
        failed = false
        return result
      } finally {
        onEnded({ op, durationMs: performance.now() - startedAtMs, failed })
      }
    }
    measured.set(op, measuredMethod)
    return measuredMethod
  }

  return new Proxy(target, {
    get: (object, name) => {
      const value: unknown = Reflect.get(object, name)
      return isMethod(value) && typeof name === 'string' ? measure(name, value) : value
    },
  })
}

const isMethod = (value: unknown): value is Method => typeof value === 'function'
