/** Does the work for the numbers from 0 to `count` - 1, so many at a time. */
export const forEachNumber = async (
  count: number,
  concurrency: number,
  work: (number: number) => Promise<void>,
): Promise<void> => {
  let next = 0
  const workSome = async (): Promise<void> => {
    while (next < count) {
      next += 1
      await work(next - 1)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, workSome))
}
