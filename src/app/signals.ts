/** Resolves with the first SIGINT or SIGTERM; the second one ends the process at once. */
export const untilSignalled = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => {
    const first = (signal: NodeJS.Signals): void => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) {
        process.off(name, first)
        process.once(name, () => process.exit(1))
      }
      resolve(signal)
    }
    process.once('SIGINT', first)
    process.once('SIGTERM', first)
  })
