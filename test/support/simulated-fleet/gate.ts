/** Something that a test can hold up, and let go. */
export interface Gate {
  /** Resolves while the gate is not held. */
  pass(): Promise<void>
  /** Holds whoever comes until the function that it returns is called. */
  hold(): () => void
}

export const createGate = (): Gate => {
  let held: Promise<void> | undefined
  return {
    pass: async () => held,
    hold: () => {
      const { promise, resolve } = withResolvers()
      held = promise
      return () => {
        if (held === promise) held = undefined
        resolve()
      }
    },
  }
}

const withResolvers = (): { readonly promise: Promise<void>; readonly resolve: () => void } => {
  let resolve = (): void => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
