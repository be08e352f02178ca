/** How one operation ended. */
export interface EndedOperation {
  /** The method's name. */
  readonly op: string
  readonly durationMs: number
  readonly failed: boolean
}

/** The same object, whose methods tell how long each call took until its promise settled. `onEnded` must not throw. */
export const measureOperations = <Target extends object>(
  target: Target,
  onEnded: (operation: EndedOperation) => void,
): Target =>
  new Proxy(target, {
    get: (object, name) => {
      const method: unknown = Reflect.get(object, name)
      if (typeof method !== 'function' || typeof name !== 'string') return method
      return async (...args: readonly unknown[]): Promise<unknown> => {
        const startedAtMs = performance.now()
        let failed = true
        try {
          const result: unknown = await Reflect.apply(method, object, args)
          failed = false
          return result
        } finally {
          onEnded({ op: name, durationMs: performance.now() - startedAtMs, failed })
        }
      }
    },
  })
