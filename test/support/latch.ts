/** A promise that a test resolves. */
export interface Latch {
  readonly opened: Promise<void>
  readonly open: () => void
}

export const createLatch = (): Latch => {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
