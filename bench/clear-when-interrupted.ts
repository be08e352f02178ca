/** Has an interrupted bench clear up after itself before it ends. */
export const clearWhenInterrupted = (clear: () => Promise<void>): void => {
  const interrupt = (): void => {
    void clear().then(() => process.exit(130))
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
}
