/** Resolves with `work`, which never rejects, or after `milliseconds` without it; the work goes on. */
export const within = async (milliseconds: number, work: Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
