/** How one operation ended. */
export interface EndedOperation {
  /** The method's name. */
  readonly op: string
  readonly durationMs: number
  readonly failed: boolean
}

type Method = (...args: readonly unknown[]) => unknown

/** Wraps `target`: each call of an own method that returns a promise is measured until it settles. `onEnded` must not throw. */
export const measureOperations = <Target extends object>(
  target: Target,
  onEnded: (operation: EndedOperation) => void,
): Target => {
  const measure =
    (op: string, method: Method): Method =>
    (...args) => {
      const startedAtMs = performance.now()
      const ended = (failed: boolean): void => onEnded({ op, durationMs: performance.now() - startedAtMs, failed })
      const result = Reflect.apply(method, target, args)
      if (!(result instanceof Promise)) return result
      // The caller gets the same promise: one of our own would cost every call two more ticks.
      void result.then(
        () => ended(false),
        () => ended(true),
      )
      return result
    }

  const measured: Target = Object.create(target)
  for (const [op, method] of Object.entries(target)) {
    if (typeof method === 'function') Object.defineProperty(measured, op, { value: measure(op, method) })
  }
  return measured
}
